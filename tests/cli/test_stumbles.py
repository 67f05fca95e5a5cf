"""Where a first config of one's own data goes wrong: each sentence says what to write instead."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from points import gradcli, only_run

__all__ = ["gradcli"]

CONFIG = """\
gradcli: 1
name: houses
data: {name: csv, file: houses.csv, target: price, task: regression, numeric: [area],
  category: [city]}
model: [linear: 1]
loss: mse
optim: {name: adam, lr: 0.01}
train: {epochs: 1, batch: 16}
"""


def houses(*rows: str) -> None:
    """houses.yaml and its table, with these rows at the end."""
    draw = random.Random(1)
    many = [f"{draw.randint(40, 300)},{draw.choice(['Lyon', 'Nice'])},{n * 997}" for n in range(90)]
    Path("houses.csv").write_text("\n".join(["area,city,price", *many, *rows]) + "\n")
    Path("houses.yaml").write_text(CONFIG)


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ('"$768,634"', "768634"),
        ('"1,234,567.50"', "1234567.50"),
        ("$ 12", "12"),
        ("12 %", "12"),
        ("-$5", "-5"),
        ('"1,5"', None),  # a comma that may be a point
        ('"12,34"', None),
        ("about 12", None),
    ],
)
def test_money_is_told_how_to_be_written(gradcli, cell: str, plain: str | None) -> None:
    houses(f"100,Nice,{cell}")
    ended = gradcli("check", "houses.yaml")
    assert ended.code == 3
    assert "row 92, column 3 (price): expected a number, found '" in ended.err
    assert ("; write it as " in ended.err) == (plain is not None)
    assert plain is None or f"; write it as {plain}\n" in ended.err


@pytest.mark.parametrize("column", ["area", "city"])
def test_of_many_wrong_cells_the_topmost_is_named(gradcli, column: str) -> None:
    houses(*([",,1"] * 20))
    only = "numeric: [area]" if column == "area" else "category: [city]"
    both = "numeric: [area],\n  category: [city]"
    Path("houses.yaml").write_text(CONFIG.replace(both, only))
    ended = gradcli("check", "houses.yaml")
    assert (ended.code, f"row 92, column {1 + (column == 'city')} ({column}): " in ended.err) == (
        3,
        True,
    )
    assert "found the missing value ''; `missing: drop` or `mean` accept it" in ended.err


def test_numbers_as_classes_are_warned_of(gradcli) -> None:
    houses()
    classes = CONFIG.replace("task: regression, ", "")
    Path("houses.yaml").write_text(classes)
    ended = gradcli("check", "houses.yaml")
    assert (
        ended.code,
        "use cross_entropy; data.task: regression predicts a number" in ended.err,
    ) == (
        2,
        True,
    )
    fitting = classes.replace("loss: mse", "loss: cross_entropy").replace("1]", "$data.classes]")
    Path("houses.yaml").write_text(fitting)
    ended = gradcli("check", "houses.yaml")
    assert ended.code == 0
    assert "warning[W107] data.target has 90 different numbers in 90 rows" in ended.err
    assert "^^^ data.task: regression predicts a number" in ended.err


@pytest.mark.parametrize("label", [lambda n: n % 20, lambda n: f"c{n}"], ids=["few", "names"])
def test_few_numbers_and_names_are_classes(gradcli, label) -> None:
    rows = "".join(f"{n},{label(n)}\n" for n in range(90))
    Path("houses.csv").write_text("area,price\n" + rows)
    text = CONFIG.replace("task: regression, ", "").replace(",\n  category: [city]", "")
    text = text.replace("loss: mse", "loss: cross_entropy").replace("1]", "$data.classes]")
    Path("houses.yaml").write_text(text)
    ended = gradcli("check", "houses.yaml")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("delimiter", "note"),
    [
        (";", 'its delimiter is a semicolon: write data.delimiter: ";"'),
        ("\t", 'its delimiter is a tab: write data.delimiter: "\\t"'),
        ("|", 'its delimiter is a bar: write data.delimiter: "|"'),
    ],
)
def test_another_delimiter_is_recognised(gradcli, delimiter: str, note: str) -> None:
    houses()
    table = Path("houses.csv").read_text()
    Path("houses.csv").write_text(table.replace(",", delimiter))
    ended = gradcli("check", "houses.yaml")
    assert (ended.code, f"= {note}\n" in ended.err) == (3, True), ended.err
    written = note.partition("data.delimiter: ")[2]
    assert gradcli("check", "houses.yaml", "-s", f"data.delimiter={written}").code == 0
    ended = gradcli("check", "houses.yaml", "-s", "data.target=prize")
    assert "its delimiter is" not in ended.err


def test_spaces_around_the_names_of_columns_are_told(gradcli) -> None:
    houses()
    table = Path("houses.csv").read_text()
    Path("houses.csv").write_text(table.replace("area,city,price", "area, city, price"))
    ended = gradcli("check", "houses.yaml")
    assert (ended.code, "the names in the file have spaces around them" in ended.err) == (3, True)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04\x14\x00 a spreadsheet", "a zip archive"),
        (b"<!DOCTYPE html>\n<html>\n<p>a, b</p>\n", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    ],
)
def test_what_is_no_table_is_named(gradcli, content: bytes, kind: str) -> None:
    houses()
    Path("houses.csv").write_bytes(content)
    ended = gradcli("check", "houses.yaml")
    assert (ended.code, f"houses.csv: this is {kind}" in ended.err) == (3, True), ended.err
    assert "not a table; save it as CSV" in ended.err


def test_a_table_that_begins_like_another_file_is_a_table(gradcli) -> None:
    houses()
    text = Path("houses.csv").read_text().replace("area,", "RIFF,", 1)
    Path("houses.csv").write_text(text)
    assert gradcli("check", "houses.yaml", "-s", "data.numeric=[RIFF]").code == 0


def test_data_without_classes_says_what_it_has(gradcli) -> None:
    houses()
    Path("houses.yaml").write_text(CONFIG.replace("linear: 1", "linear: $data.classes"))
    ended = gradcli("check", "houses.yaml")
    assert ended.code == 2
    assert "^^^ its targets are values; classes are whole numbers or names" in ended.err


@pytest.mark.parametrize("command", ["resume", "eval", "predict"])
def test_what_is_no_run_names_the_run_meant(gradcli, command: str) -> None:
    assert gradcli("train", "dots.yaml").code == 0
    run = only_run()
    checkpoint = run / "checkpoints" / (run / "last").read_text().strip()
    files = ["dots.yaml"] if command == "predict" else []
    names = f"the newest run in it: say dots, or {run}\n"
    for text, cure in (
        ("runs/dots", names),
        ("runs", names),
        (f"{Path.cwd()}/runs/dots@last", "the newest run in it: say dots, or "),
        (str(run / "checkpoints"), f"it is of a run: say {run}\n"),
        (str(run / "resolved.yaml"), f"it is of a run: say {run}\n"),
        (str(checkpoint), f"it is of a run: say {run}@18\n"),
        ("", "no run '': a run is named by its path, its name or `last`"),
        ("@best", "no run '': a run is named by its path, its name or `last`"),
        ("dots.yaml", "no run 'dots.yaml' in runs; did you mean 'dots'?"),
        ("x" * 300, "no run 'xxx"),
    ):
        ended = gradcli(command, text, *files)
        assert ended.code == 7, (text, ended.err)
        assert cure in ended.err
    Path("emptied/runs").mkdir(parents=True)
    assert "say" not in gradcli(command, "emptied", *files).err


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "dots", "NAME"],
        ["predict", "dots", "dots.yaml", "--out", "NAME.csv"],
        ["eval", "dots", "--runs", "NAME"],
        ["train", "NAME"],
        ["check", "NAME"],
        ["train", "dots.yaml", "--from", "NAME"],
    ],
)
def test_a_name_that_no_file_can_have_is_refused(gradcli, arguments: list[str]) -> None:
    assert gradcli("train", "dots.yaml").code == 0
    ended = gradcli(*(text.replace("NAME", "x" * 300) for text in arguments))
    assert ended.code in (2, 3, 7), ended.err
    assert "bug" not in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", ""],
        ["check", ""],
        ["predict", "dots", ""],
        ["predict", "dots", "dots.yaml", "--out", ""],
        ["eval", "dots", "--data", ""],
        ["resume", "dots", "--runs", ""],
    ],
)
def test_an_empty_name_is_not_the_current_folder(gradcli, arguments: list[str]) -> None:
    ended = gradcli(*arguments)
    assert ended.code == 2
    assert "an empty text names no file or folder" in ended.err


@pytest.mark.parametrize(
    ("labels", "more", "warning"),
    [
        ([1, 2, 3], "", "the labels begin at 1: class 0 has no sample, and the model gets 4 outp"),
        ([5, 6], "", "the labels begin at 5: classes 0 to 4 have no sample, and the model gets 7"),
        ([0, 2], "", None),
        ([1, 2, 3], ", classes: 4", None),
    ],
)
def test_labels_that_do_not_begin_at_0_are_told_at_check(
    gradcli, labels: list[int], more: str, warning: str | None
) -> None:
    numpy: Any = pytest.importorskip("numpy", reason="of the extra 'parity'")
    numpy.savez("x.npz", x=numpy.zeros((30, 2), "f4"), y=numpy.resize(labels, 30))
    Path("x.yaml").write_text(
        f"gradcli: 1\ndata: {{name: npz, file: x.npz, inputs: x, targets: y{more}}}\n"
        "model: [linear: $data.classes]\nloss: cross_entropy\noptim: adam\n"
        "train: {epochs: 1, batch: 10}\n"
    )
    ended = gradcli("check", "x.yaml")
    assert ended.code == 0
    assert ("W109" in ended.err) == (warning is not None)
    if warning:
        assert f"warning[W109] {warning}" in ended.err
        assert f"subtract {labels[0]}, or write data.classes: {labels[-1] + 1}" in ended.err


@pytest.mark.parametrize(("header", "meant"), [("area,garages", "garages"), ("area,x", None)])
def test_a_column_that_is_asked_for_anyway_is_not_offered(
    gradcli, header: str, meant: str | None
) -> None:
    Path("t.csv").write_text(f"{header},price\n" + "1,2,3\n" * 30)
    text = CONFIG.replace("houses.csv", "t.csv").replace("[area]", "[area, garage]")
    Path("t.yaml").write_text(text.replace("category: [city]", "category: []"))
    ended = gradcli("check", "t.yaml")
    assert ended.code == 3
    assert "no column is called 'garage'" in ended.err
    assert (f"did you mean '{meant}'?" if meant else "file has: area") in ended.err
    assert "'area'?" not in ended.err
