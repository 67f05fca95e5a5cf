"""A mapped file that is cut off or written to while it is read: exit 3, and nothing wrong is kept.

Child processes read (shortened_driver.py), which a bus error would end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).parent / "shortened_driver.py"


def child(command: str, folder: Path, **when: int) -> dict[str, Any]:
    """What the child answers whose file is changed behind these steps."""
    words = [sys.executable, str(DRIVER), command, str(folder), json.dumps(when)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_training_on_a_file_that_is_cut_off_drops_the_steps_since(tmp_path: Path) -> None:
    whole = child("train", tmp_path / "whole")
    cut = child("train", tmp_path / "cut", shorten=9)
    assert cut["exit"] == 3
    assert (
        "points.f32' was changed while it was in use: it had 1048576 bytes, and has 4096"
        in (cut["error"])
    )
    # Steps 9 and 10 were made of the whole file; 11 and 12 were not, and are nowhere.
    assert cut["step"] == 10 and cut["losses"] == whole["losses"][:10]
    assert cut["saved"][-1] == "step-00000008.safetensors"
    assert child("resume", tmp_path / "cut")["sha256"] == whole["sha256"]


def test_a_cut_is_seen_before_a_checkpoint_too(tmp_path: Path) -> None:
    cut = child("train", tmp_path, shorten=8)
    assert cut["exit"] == 3 and cut["saved"][-1] == "step-00000004.safetensors"


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_no_figure_and_no_answer_comes_of_a_file_that_is_cut_off(
    tmp_path: Path, command: str
) -> None:
    answer = child(command, tmp_path)
    assert (answer["exit"], answer["answers"]) == (3, 0)
    assert "points.f32' was changed" in answer["error"]


def test_a_file_that_is_moved_away_stays_mapped(tmp_path: Path) -> None:
    whole = child("train", tmp_path / "whole")
    assert child("train", tmp_path / "gone", unlink=7)["sha256"] == whole["sha256"]


@pytest.mark.parametrize("how", ["overwrite", "replace"])
def test_what_is_written_over_or_replaced_is_found_before_a_checkpoint(
    tmp_path: Path, how: str
) -> None:
    answer = child("train", tmp_path, **{how: 7})
    assert answer["exit"] == 3 and answer["saved"][-1] == "step-00000004.safetensors"
    assert "points.f32' was changed" in answer["error"]
