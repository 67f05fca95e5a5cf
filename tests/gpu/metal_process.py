"""`gradcli ...` on the stand-in for Metal: this machine is taken for a Mac.

STANDIN_METAL_FREE says how many bytes the GPU says it has: others may take them before we do.
STANDIN_SHARE is that of its free memory above which data stays on the host.
"""

from __future__ import annotations

import os
import sys

from gradcli.cli import main
from gradcli.data import staging
from gradcli.engine.device.gpu import installed
from gradcli.engine.device.gpu.metal import Metal

if __name__ == "__main__":
    installed._mac = lambda: ("macOS 14.5 arm64", True)
    installed.version = lambda name: "12.2.2"
    says = os.environ.get("STANDIN_METAL_FREE")
    if says:
        Metal.free_memory = lambda driver: int(says)  # type: ignore[method-assign]
    staging.SHARE = float(os.environ.get("STANDIN_SHARE", staging.SHARE))
    sys.exit(main.run(sys.argv[2:]))
