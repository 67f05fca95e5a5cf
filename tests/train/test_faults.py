"""A call to the file system that fails costs no training its weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_one_fault_of_the_file_system_at_a_time_loses_nothing() -> None:
    short = ("-s", "train.epochs=1", "--faults", "3")
    command = [sys.executable, "tests/fault_driver.py", "--config", "configs/penguins.yaml"]
    done = subprocess.run(
        [*command, *short], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 equal" in done.stdout
