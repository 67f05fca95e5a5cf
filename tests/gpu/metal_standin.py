"""The stand-in for pyobjc's module Metal (tests/standin/metal), put where Python looks first."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msl
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "standin" / "metal"

if not msl.clang():
    pytest.skip("needs clang-19", allow_module_level=True)
sys.path.insert(0, str(FOLDER))
# Here, before gradcli's driver looks for them.
api: Any = importlib.import_module("Metal")
commands: Any = importlib.import_module("metal_commands")
objc: Any = importlib.import_module("objc")


def run(*command: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """`run("gradcli", "train", ...)` on the stand-in, in a process of its own."""
    own = {f"STANDIN_METAL_{key.upper()}": str(value) for key, value in settings.items()}
    paths = [str(FOLDER), str(ROOT), str(ROOT / "tests" / "gpu"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "metal_process", *command],
        env={**os.environ, "PYTHONPATH": ":".join(path for path in paths if path), **own},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
