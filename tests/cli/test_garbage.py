"""Garbage is looked for seldom while a command starts, and as usual when it computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = """
import gc
usual = gc.get_threshold()
from gradcli.cli import garbage, options
options.compute_on("cpu", 1)
assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, 0)  # whoever calls from Python
garbage.seldom()
assert gc.get_threshold() > usual
options.compute_on("cpu", 1)
assert gc.get_threshold() == usual
assert gc.get_freeze_count() > 0
"""


def test_the_search_for_garbage_is_usual_once_a_command_computes() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
