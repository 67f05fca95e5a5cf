"""SHA256SUMS that lists the data under another folder: every kind of data says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli
from tiny_data import CASES

__all__ = ["gradcli"]


# A folder of pictures compares no sums of single files.
@pytest.mark.parametrize("case", [name for name in CASES if name != "image_folder"])
def test_a_file_that_is_listed_elsewhere_is_noted(gradcli: Callable[..., Ended], case: str) -> None:
    Path("sums.yaml").write_text(CASES[case].config())
    files = [path for path in Path().rglob("data/**/*") if path.is_file()]
    for path in files:
        with (path.parent / "SHA256SUMS").open("a") as sums:
            sums.write(f"{'0' * 64}  /old/{path.name}\n")
    ended = gradcli("train", "sums.yaml", "--max-steps", "1")
    assert ended.code == 0
    notes = ended.err.count("is not checked: SHA256SUMS beside it lists '/old/")
    assert notes == len(files)
