"""What a person sees in a narrow terminal: nothing wider, no broken word, carets under their place.

What a program reads is never broken.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.cells import cells
from gradcli.cli.bar import Bar
from tests.cli.terminal import in_terminal

WIDTHS = (40, 60, 80, 200)
HOUSES = (
    "data: {name: csv, file: houses.csv, target: price, task: regresion, "
    "numeric: [area, rooms, year], category: [city, heating], missing: mean}\n"
)
REST = """
model: [linear: 1]
loss: mse
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4}
"""


def pointed(lines: list[str]) -> str:
    """The text above the first caret."""
    at = next(i for i, line in enumerate(lines) if "^" in line)
    start, size = cells(lines[at].split("^")[0]), lines[at].count("^")
    shown = "".join(c * cells(c) for c in lines[at - 1])  # a wide character in both of its cells
    return shown[start : start + size]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_caret_stands_under_its_place(columns: int, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("gradcli: 1\n" + HOUSES + REST)
    screen = in_terminal(columns, ["check", "a.yaml"], tmp_path)
    assert screen.code == 2
    assert screen.widest() <= columns
    assert pointed(screen.lines) == "regresion"
    assert "regression" in screen.text  # the remark


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_caret_behind_wide_characters_and_tabs_stands_under_its_place(
    columns: int, tmp_path: Path
) -> None:
    line = HOUSES.replace("houses", "日本語の家屋\u0301" * 3).replace("price, ", "price,\t")
    (tmp_path / "a.yaml").write_text("gradcli: 1\n" + line + REST)
    screen = in_terminal(columns, ["check", "a.yaml"], tmp_path)
    assert screen.widest() <= columns
    assert pointed(screen.lines) == "regresion"


def test_errors_are_not_broken_where_a_program_reads(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("gradcli: 1\n" + HOUSES + REST)
    ended = subprocess.run(
        [sys.executable, "-m", "gradcli", "check", "a.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert HOUSES.strip() in ended.stderr
    assert "…" not in ended.stderr


def test_a_long_sentence_is_broken_between_words(tmp_path: Path) -> None:
    screen = in_terminal(40, ["eval", "no-such-run", "--partial", "--split", "test"], tmp_path)
    assert screen.widest() <= 40
    words = " ".join(line.strip() for line in screen.lines)
    assert "no-such-run" in words


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_the_bar_is_whole(columns: int) -> None:
    bar = Bar(total=4300, initial=1204, file=io.StringIO(), ncols=columns, unit="step")
    bar.set_description("epoch 3/10")
    bar.set_postfix_str("loss 0.1234, lr 0.001")
    text = str(bar)
    assert len(text) <= columns
    assert ("loss 0.1234, lr 0.001" if columns > 40 else "loss 0.1234") in text
    assert "|, " not in text
    assert ": :" not in text
    assert text.count("|") == 2
    assert len(text.split("|")[1]) >= (8 if columns >= 60 else 3)


@pytest.mark.parametrize("columns", [40, 60])
def test_the_bar_of_a_training_is_whole(columns: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{x},{x}\n" for x in range(40)))
    data = "gradcli: 1\ndata: {name: csv, file: a.csv, target: y, numeric: [x], task: regression}\n"
    (tmp_path / "a.yaml").write_text(data + REST)
    screen = in_terminal(columns, ["train", "a.yaml"], tmp_path, NO_COLOR="1")
    drawn = [part for part in re.split(r"[\r\n]", screen.text) if re.match(r"epoch .*\|", part)]
    assert drawn
    for part in drawn:
        assert cells(part) <= columns
        assert part.count("|") == 2


def test_only_a_near_option_is_offered(tmp_path: Path) -> None:
    far = in_terminal(80, ["predict", "last", "--data", "x"], tmp_path).text
    assert "Did you mean" not in far
    near = in_terminal(80, ["predict", "last", "--partal"], tmp_path).text
    assert "Did you mean '--partial'?" in near
