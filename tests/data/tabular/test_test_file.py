"""`test_file`: the test split of a table in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.errors import ConfigError, DataError

TRAIN = "x,city,y\n" + "1,Rome,a\n3,Oslo,b\n" * 10


def given(folder: Path, test: str, **options: Any) -> CsvSource:
    (folder / "train.csv").write_text(TRAIN)
    (folder / "test.csv").write_text(test)
    keys = {
        "file": "train.csv",
        "test_file": "test.csv",
        "target": "y",
        "numeric": ("x",),
        "category": ("city",),
        "standardize": False,
    }
    return CsvSource(**{**keys, **options}).locate(folder)


def test_the_test_split_is_its_rows_in_their_order(tmp_path: Path) -> None:
    loaded = given(tmp_path, "city,y,x\nOslo,b,7\nRome,a,8\nOslo,a,9\n").load()
    assert loaded.facts.sizes == {"train": 18, "val": 2, "test": 3}
    inputs, targets = loaded.splits["test"].batch(engine.arange(3))
    assert inputs.tolist() == [[7, 1, 0], [8, 0, 1], [9, 1, 0]]
    assert targets.tolist() == [1, 0, 0]
    assert set(loaded.sha256) == set(loaded.files) == {"train", "test"}


def test_prepared_rows_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = given(tmp_path, TRAIN, cache=str(tmp_path / "cache"), split={"stratify": True})
    direct = source.load()
    monkeypatch.setattr("gradcli.data.csv.small", lambda *paths: False)
    prepared = source.load()
    assert prepared.facts.sizes == direct.facts.sizes == {"train": 18, "val": 2, "test": 20}
    assert dict(prepared.sha256) == dict(direct.sha256)
    for name, split in direct.splits.items():
        at = engine.arange(split.size)
        for one, other in zip(split.batch(at), prepared.splits[name].batch(at), strict=True):
            assert one.tolist() == other.tolist()


def test_a_series_may_have_a_test_file(tmp_path: Path) -> None:
    options = {"task": "regression", "target": "x", "category": (), "window": 4}
    rows = "x,city,y\n" + "".join(f"{row},Rome,a\n" for row in range(9))
    loaded = given(tmp_path, rows, split={"train": "50%", "val": "50%"}, **options).load()
    assert loaded.facts.sizes == {"train": 6, "val": 6, "test": 5}
    assert loaded.splits["test"].batch(engine.tensor([4]))[1].tolist() == [[8]]


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("x,city,y\n1,Bonn,a\n", r"test.csv: row 2, column 2 \(city\): unknown category 'Bonn'"),
        ("x,city,y\n1,Rome,a\n2,Rome,c\n", r"test.csv: row 3.*knows no class 'c'"),
        ("x,town,y\n1,Rome,a\n", "test.csv: no column is called 'city'"),
        ("x,city,y\n,Rome,a\n", r"test.csv: row 2, column 1 \(x\): expected a number"),
        ("x,city,y\n", "test.csv: the table is empty"),
    ],
)
def test_rows_that_do_not_go_with_the_training_table_are_named(
    tmp_path: Path, test: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        given(tmp_path, test).facts()


def test_split_names_train_and_val_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="split has 'test'; here it takes train, val"):
        given(tmp_path, TRAIN, split={"train": "80%", "val": "10%", "test": "10%"}).facts()
