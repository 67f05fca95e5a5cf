"""`target: [a, b]`: several numbers to predict from a row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.data.targets import with_targets
from gradcli.errors import ConfigError, DataError


def flats(folder: Path, **options: Any) -> CsvSource:
    rows = [f"{row},{3000 * row},{8 * row}" for row in range(10, 30)]
    (folder / "t.csv").write_text("\n".join(["area,price,rent", *rows]) + "\n")
    keys = {"file": "t.csv", "target": ("price", "rent"), "task": "regression"}
    keys |= {"numeric": ("area",), "standardize": False}
    return CsvSource(**{**keys, **options}).locate(folder)


def test_targets_are_a_column_each_under_their_names(tmp_path: Path) -> None:
    loaded = with_targets(flats(tmp_path).load())
    facts: Any = loaded.facts
    assert (facts.target, facts.values) == ((2,), ("price", "rent"))
    inputs, targets = loaded.splits["train"].batch(engine.arange(16))
    assert targets.tolist() == [[3000 * area, 8 * area] for (area,) in inputs.tolist()]
    assert facts.targets.mean[0] == pytest.approx(facts.targets.mean[1] * 375)
    measured = loaded.read_split(tmp_path / "t.csv").split
    assert measured.batch(engine.tensor([1]))[1].tolist() == [[33000, 88]]
    assert loaded.read(tmp_path / "t.csv").inputs.shape == (20, 1)


def test_no_target_is_an_input_where_columns_are_sorted(tmp_path: Path) -> None:
    source = flats(tmp_path, numeric=())
    rows = [f"{row * 7 % 23},{row * 5 % 19},{row * 3 % 17}" for row in range(30)]
    Path(source.file).write_text("\n".join(["area,price,rent", *rows]) + "\n")
    facts: Any = source.load().facts
    assert [column.name for column in facts.numeric] == ["area"]


def test_of_a_series_all_targets_are_inputs(tmp_path: Path) -> None:
    split = {"train": "50%", "val": "50%"}
    loaded = flats(tmp_path, numeric=("price", "rent"), window=3, split=split).load()
    inputs, targets = loaded.splits["val"].batch(engine.tensor([0]))
    assert inputs.tolist() == [[[60000, 160], [63000, 168], [66000, 176]]]
    assert targets.tolist() == [[69000, 184]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "classification"}, "target names 2 columns; a classification has one"),
        ({"target": ()}, "target names 0 columns"),
        ({"target": ("price", "price")}, "the column 'price' is named twice"),
        ({"target": ("price", "area")}, "the column 'area' is named twice"),
    ],
)
def test_targets_that_cannot_be_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        flats(tmp_path, **options)


def test_a_target_that_is_no_number_is_named_with_its_row(tmp_path: Path) -> None:
    source = flats(tmp_path)
    path = Path(source.file)
    path.write_text(path.read_text().replace("\n12,36000,96", "\n12,36000,much"))
    with pytest.raises(DataError, match=r"row 4, column 3 \(rent\): expected a number"):
        source.facts()
