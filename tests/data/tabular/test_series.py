"""Time series in tables: windows of rows in the file's order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.errors import ConfigError, DataError

SPLIT = {"train": "60%", "val": "20%", "test": "20%"}


def series(folder: Path, rows: int = 50, **options: Any) -> CsvSource:
    """Row i: i, 10 i and the target 100 i."""
    lines = [f"{row},{10 * row},{100 * row}" for row in range(rows)]
    (folder / "t.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    keys = {
        "file": "t.csv",
        "target": "y",
        "task": "regression",
        "numeric": ("a", "b"),
        "standardize": False,
        "window": 3,
        "split": SPLIT,
    }
    return CsvSource(**{**keys, **options}).locate(folder)


def test_a_sample_is_a_window_and_the_target_lies_behind_it(tmp_path: Path) -> None:
    split = series(tmp_path, horizon=2).load().splits["train"]
    inputs, targets = split.batch(engine.tensor([0, 4]))
    assert inputs.tolist() == [[[0, 0], [1, 10], [2, 20]], [[4, 40], [5, 50], [6, 60]]]
    assert targets.tolist() == [[400], [800]]


def test_columns_come_first_where_convolutions_want_them(tmp_path: Path) -> None:
    source = series(tmp_path, channels="first")
    inputs, _ = source.load().splits["train"].batch(engine.tensor([1]))
    assert inputs.tolist() == [[[1, 2, 3], [10, 20, 30]]]
    assert source.facts().input == (2, 3)


def test_no_window_crosses_the_cut_between_splits(tmp_path: Path) -> None:
    loaded = series(tmp_path, horizon=2).load()
    assert loaded.facts.sizes == {"train": 26, "val": 6, "test": 6}
    for name, low, high in (("train", 0, 30), ("val", 30, 40), ("test", 40, 50)):
        split = loaded.splits[name]
        inputs, targets = split.batch(engine.arange(split.size))
        assert (inputs[:, :, 0].amin().item(), targets.amax().item()) == (low, 100 * (high - 1))


def test_rows_lie_in_memory_once(tmp_path: Path) -> None:
    split: Any = series(tmp_path, rows=600, window=100).load().splits["train"]
    assert split.rows.shape == (360, 2)
    assert split.stored_targets.tolist() == [[100.0 * row] for row in range(100, 360)]


def test_numbers_are_standardised_by_the_training_stretch(tmp_path: Path) -> None:
    (column, _) = series(tmp_path, standardize=True).load().facts.numeric
    assert column.shift == 14.5


def test_gaps_are_filled_with_the_mean_of_the_training_stretch(tmp_path: Path) -> None:
    source = series(tmp_path, missing="mean", numeric=("a",))
    text = Path(source.file).read_text().replace("\n7,70", "\n,70")
    Path(source.file).write_text(text)
    inputs, _ = source.load().splits["train"].batch(engine.tensor([6]))
    assert inputs.reshape(-1).tolist() == pytest.approx([6, (435 - 7) / 29, 8])


def test_the_past_of_the_target_is_an_input(tmp_path: Path) -> None:
    named = series(tmp_path, numeric=("a", "y")).load()
    assert named.splits["val"].batch(engine.tensor([0]))[0][0, :, 1].tolist() == [3000, 3100, 3200]
    found = series(tmp_path, numeric=()).load().facts
    assert [column.name for column in found.numeric][-1] == "y"


def test_classes_may_be_told_of_a_window(tmp_path: Path) -> None:
    lines = [f"{row},{'up' if row % 3 else 'down'}" for row in range(40)]
    (tmp_path / "c.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    options = {"file": "c.csv", "task": "classification", "numeric": ("a",)}
    split = series(tmp_path, **options).load().splits["train"]
    assert split.batch(engine.tensor([0, 1]))[1].tolist() == [0, 1]


def test_prepared_rows_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = series(tmp_path, cache=str(tmp_path / "cache"))
    direct = source.load().splits["test"].batch(engine.arange(5))
    monkeypatch.setattr("gradcli.data.csv.small", lambda *paths: False)
    prepared = source.load().splits["test"].batch(engine.arange(5))
    assert [one.tolist() for one in prepared] == [one.tolist() for one in direct]


def test_the_outline_is_as_large_as_the_data(tmp_path: Path) -> None:
    source = series(tmp_path, channels="first", horizon=4)
    outline: Any = source.outline(source.facts())
    for name, split in source.load().splits.items():
        assert outline[name].size == split.size
        assert outline[name].rows.shape == split.rows.shape
        assert outline[name].values.shape == split.values.shape


def test_a_new_table_has_a_window_for_each_row_that_ends_one(tmp_path: Path) -> None:
    source = series(tmp_path)
    loaded = source.load()
    new = tmp_path / "new.csv"
    new.write_text("a,b\n1,2\n3,4\n5,6\n7,8\n")
    found = loaded.read(new)
    assert found.inputs[:].tolist() == [[[1, 2], [3, 4], [5, 6]], [[3, 4], [5, 6], [7, 8]]]
    assert (list(found.names), list(found.indices)) == (["new.csv:4", "new.csv:5"], [2, 3])
    measured = loaded.read_split(Path(source.file)).split
    assert measured.size == 47
    new.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"new.csv: 1 row is too few: a window has 3"):
        loaded.read(new)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "missing: drop would join rows that do not follow each other"),
        ({"seed": 3}, "seed would mix rows, and a time series is split in its order"),
        ({"split": {**SPLIT, "group": "b"}}, "split: group would mix rows"),
        ({"window": 0}, "window must be 1 to 1048576, got 0"),
        ({"horizon": 0}, "horizon must be 1 to 1048576, got 0"),
        ({"window": None, "horizon": 2}, "horizon is of a time series and needs window"),
        ({"window": None, "channels": "first"}, "channels is of a time series and needs window"),
    ],
)
def test_what_does_not_go_with_a_series_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        series(tmp_path, **options)


def test_a_split_that_is_shorter_than_a_window_is_refused(tmp_path: Path) -> None:
    message = r"t.csv: the val split has 10 rows; a window of 9 and a horizon of 2 need at least 11"
    with pytest.raises(DataError, match=message):
        series(tmp_path, window=9, horizon=2).facts()
