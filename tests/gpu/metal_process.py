"""`gradcli ...` on the stand-in for Metal: this machine is taken for a Mac."""

from __future__ import annotations

import sys

from gradcli.cli import main
from gradcli.engine.device.gpu import installed

if __name__ == "__main__":
    installed._mac = lambda: ("macOS 14.5 arm64", True)
    installed.version = lambda name: "12.2.2"
    sys.exit(main.run(sys.argv[2:]))
