"""Builds the kernels in place with other flags: `python tests/build_kernels.py -O1 -g ...`.

For copies of the project: the sanitizers need such a build, and a test that only asks whether
something is right need not wait for the optimiser.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(flags: list[str]) -> None:
    """Compile what device/build.py compiles, with `flags` in the place of its -O3."""
    plain = runpy.run_path(str(ROOT / "gradcli" / "engine" / "device" / "build.py"))
    compiled = [flag for flag in plain["FLAGS"] if flag != "-O3"] + flags
    linked = [flag for flag in flags if flag.startswith(("-fsanitize", "--coverage"))]
    builder = plain["builder"](compiled, linked)
    builder.compile(tmpdir=str(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
