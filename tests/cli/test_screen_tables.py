"""Tables in a narrow terminal: every row on one line of whole words; piped, nothing is cut."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.cells import cells
from tests.cli.terminal import Screen, in_terminal

CLASSES = [f"a rather long name of class {i}" for i in range(23)] + ["日本語", "\x1b[31mred"]
CONFIG = """
gradcli: 1
name: kinds
data: {name: csv, file: rows.csv, target: kind, numeric: [x, y], split: {train: 60%, test: 40%}}
model:
  - linear: {out: 1024, name: a-layer-with-quite-a-long-name}
  - relu
  - linear: {out: 1024, name: another-layer-with-a-long-name}
  - relu
  - linear: $data.classes
loss: cross_entropy
metrics: [confusion]
optim: {name: sgd, lr: 0.1}
train: {steps: 1, batch: 8}
"""
TEXT = """
gradcli: 1
name: text
data: {name: text, file: text.txt, context: 8}
model: [{embed: 4}, {linear: $data.vocab}]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {steps: 1, batch: 8}
"""
ESCAPE = "\x1b"


def gradcli(folder: Path, *arguments: str) -> str:
    """What a program reads."""
    command = [sys.executable, "-m", "gradcli", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return ended.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run with many classes of long names, and one of text that holds what steers a terminal."""
    path = tmp_path_factory.mktemp("tables")
    rows = [f"{i},{i % 7},{CLASSES[i % len(CLASSES)]}" for i in range(200)]
    (path / "rows.csv").write_text("\n".join(["x,y,kind", *rows]) + "\n")
    (path / "kinds.yaml").write_text(CONFIG)
    (path / "text.txt").write_text(f"{ESCAPE}[2J\t\n{ESCAPE}c\t\n" * 40)
    (path / "text.yaml").write_text(TEXT)
    for name in ("kinds", "text"):
        gradcli(path, "train", f"{name}.yaml")
    long = path / "a-folder-with-quite-a-long-name" / "and-another-folder-in-it"
    long.mkdir(parents=True)
    (long / "new.csv").write_text("x,y\n1,2\n3,4\n")
    return path


def screen(columns: int, folder: Path, *arguments: str) -> Screen:
    shown = in_terminal(columns, arguments, folder, NO_COLOR="1")
    assert shown.code == 0
    # A word that is wider than the screen stays whole, such as a sha256.
    assert max(cells(line) for line in shown.lines if " " in line.strip()) <= columns
    return shown


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_check_has_a_line_for_each_layer(folder: Path, columns: int) -> None:
    shown = screen(columns, folder, "check", "kinds.yaml")
    rows = [line for line in shown.lines if re.match(r" +\d  |total", line)]
    assert [line.split()[0] for line in rows] == ["0", "1", "2", "3", "4", "total"]
    counts = [line.split()[-1] for line in rows]
    assert counts == ["3,072", "0", "1,049,600", "0", "25,625", "1,078,297"]


@pytest.mark.parametrize("columns", [60, 80])
def test_bench_has_a_line_for_each_row(folder: Path, columns: int) -> None:
    shown = screen(columns, folder, "bench", "kinds.yaml", "--steps", "1")
    lines = shown.lines
    begin = next(i for i, line in enumerate(lines) if line.startswith("layer "))
    assert lines[begin].endswith("of ceiling")
    end = next(i for i, line in enumerate(lines) if line.startswith("all, one a"))
    rows = [line for line in lines[begin + 1 : end + 1] if line.strip()]
    assert all(re.search(r"\d(\.\d+)?%?$", row) for row in rows)
    calls = next(i for i, line in enumerate(lines) if line.startswith("call "))
    assert re.match(r"\w+…? +\d+\.\d{4} ", lines[calls + 1])


@pytest.mark.parametrize("columns", [40, 60])
def test_ops_have_a_line_each(folder: Path, columns: int) -> None:
    shown = screen(columns, folder, "ops")
    piped = gradcli(folder, "ops").splitlines()
    names = [line.split()[0] for line in piped if line.startswith("  ")]
    rows = [line.split()[0] for line in shown.lines if line.startswith("  ")]
    assert rows[: len(names)] == names
    assert not any("…" in line for line in piped)


def test_ops_name_and_doctor_put_values_below_each_other(folder: Path) -> None:
    one = screen(60, folder, "ops", "layer_norm")
    doctor = screen(60, folder, "doctor")
    for shown, first, beginning in ((one, "  family ", 13), (doctor, "gradcli ", 11)):
        begin = next(i for i, line in enumerate(shown.lines) if line.startswith(first))
        rows = [line for line in shown.lines[begin:] if line.strip()]
        assert all(line[beginning - 1] == " " and line[beginning] != " " for line in rows)


def test_gradcheck_fits(folder: Path) -> None:
    assert "1 op," in screen(40, folder, "gradcheck", "add").text


@pytest.mark.parametrize("columns", [60, 100])
def test_a_matrix_has_a_row_for_each_class(folder: Path, columns: int) -> None:
    shown = screen(columns, folder, "eval", "kinds")
    begin = next(i for i, line in enumerate(shown.lines) if line.startswith("test.confusion"))
    rows = [line for line in shown.lines[begin:] if re.match(r"  a rather|  日本語|  \\x1b", line)]
    assert len(rows) == len(CLASSES)
    assert ESCAPE not in shown.text
    assert ("…" in rows[0]) == (columns == 60)
    text = " ".join(line.strip() for line in shown.lines)
    assert bool(re.search(r"\(the first \d+ of 25; --json has all\)", text)) == (columns == 60)


def test_piped_a_matrix_is_whole(folder: Path) -> None:
    lines = gradcli(folder, "eval", "kinds").splitlines()
    begin = lines.index("test.confusion: a row for each class, a column for each answer")
    longest = max(map(len, CLASSES))
    for one, line in zip(sorted(CLASSES), lines[begin + 1 :], strict=False):
        assert line.startswith(f"  {one}")
        assert len(line.split()[-25:]) == 25
    assert len(lines[begin + 1]) >= 2 + longest + 2 + 49


@pytest.mark.parametrize("columns", [40, 60])
def test_a_prediction_is_one_line(folder: Path, columns: int) -> None:
    file = "a-folder-with-quite-a-long-name/and-another-folder-in-it/new.csv"
    shown = screen(columns, folder, "predict", "kinds", file)
    rows = [line for line in shown.lines if "ew.csv" in line]
    assert len(rows) == 2
    assert all(re.fullmatch(r"a-\S+…\S*ew.csv \d  a .*\d\.\d{4}", row) for row in rows)
    piped = gradcli(folder, "predict", "kinds", file).splitlines()
    assert [row.split("\t")[:2] for row in piped] == [[file, "0"], [file, "1"]]


def test_generated_text_does_not_steer_the_terminal(folder: Path) -> None:
    ask = ("predict", "text", "--prompt", "[", "--tokens", "200", "--temperature", "9")
    shown = in_terminal(60, ask, folder, NO_COLOR="1").text
    piped = gradcli(folder, *ask)
    assert ESCAPE in piped
    assert ESCAPE not in shown
    _weights, written = shown.replace("\r\n", "\n").split("\n", 1)
    assert written.startswith(piped.replace(ESCAPE, "\\x1b"))
    assert "\t" in shown
