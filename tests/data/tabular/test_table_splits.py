"""Which rows of a table go to which split: by class, by group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.data.prepared import cache
from gradcli.errors import ConfigError, DataError


def visits(folder: Path, rows: int = 120, **options: Any) -> CsvSource:
    """Row i: its number, one of 12 patients, and for each tenth row the rare class."""
    lines = [f"{row},{row % 12},{'ill' if row % 10 == 0 else 'well'}" for row in range(rows)]
    (folder / "visits.csv").write_text("\n".join(["row,patient,state", *lines]) + "\n")
    keys = {"file": "visits.csv", "target": "state", "numeric": ("row",), "standardize": False}
    return CsvSource(**{**keys, **options}).locate(folder)


def rows_of(split: Any) -> list[int]:
    return [int(row) for row in split.batch(engine.arange(split.size))[0][:, 0].tolist()]


def test_each_class_has_its_share_of_the_rows(tmp_path: Path) -> None:
    split = {"train": "50%", "val": "25%", "test": "25%", "stratify": True}
    loaded = visits(tmp_path, split=split).load()
    ill = {
        name: sum(row % 10 == 0 for row in rows_of(part)) for name, part in loaded.splits.items()
    }
    assert ill == {"train": 6, "val": 3, "test": 3}
    assert loaded.facts.sizes == {"train": 60, "val": 30, "test": 30}


def test_stratify_alone_keeps_the_usual_sizes(tmp_path: Path) -> None:
    facts = visits(tmp_path, split={"stratify": True}).facts()
    assert facts.sizes == {"train": 96, "val": 12, "test": 12}


@pytest.mark.parametrize("named", [True, False], ids=["columns named", "columns sorted"])
def test_rows_of_a_group_lie_in_one_split_and_the_group_is_no_input(
    tmp_path: Path, named: bool
) -> None:
    split = {"train": "50%", "val": "50%", "group": "patient"}
    options = {} if named else {"numeric": ()}
    lines = [f"{row * 7 % 50 + row},{row % 12},{row % 2}" for row in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,patient,y", *lines]) + "\n")
    source = visits(tmp_path, split=split)
    if not named:
        source = visits(tmp_path, file="t.csv", target="y", split=split, **options)
        assert [column.name for column in source.load().facts.numeric] == ["x"]
        return
    patients = [{row % 12 for row in rows_of(part)} for part in source.load().splits.values()]
    assert not patients[0] & patients[1]
    assert len(patients[0] | patients[1]) == 12


def test_prepared_rows_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in ({"stratify": True}, {"train": "50%", "val": "50%", "group": "patient"}):
        source = visits(tmp_path, split=split, cache=str(tmp_path / "cache"))
        direct = {name: rows_of(part) for name, part in source.load().splits.items()}
        with monkeypatch.context() as patched:
            patched.setattr("gradcli.data.csv.small", lambda *paths: False)
            prepared = {name: rows_of(part) for name, part in source.load().splits.items()}
        assert prepared == direct
    assert cache.small(Path(source.file))


def test_a_row_without_a_group_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,patient,y\n1,a,p\n2,,q\n3,b,p\n4,c,q\n")
    split = {"train": "50%", "val": "50%", "group": "patient"}
    keys = {"file": "t.csv", "target": "y", "numeric": ("x",), "missing": "mean"}
    with pytest.raises(DataError, match=r"row 3, column 2 \(patient\): expected a category, found"):
        visits(tmp_path, split=split, **keys).load()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"task": "regression", "target": "patient", "split": {"stratify": True}},
            "stratify shares out classes, and the targets here are none",
        ),
        ({"split": {"stratify": True, "group": "patient"}}, "stratify and group, which cannot"),
        ({"split": {"group": "row"}}, "group 'row' is an input or the target too"),
        ({"split": {"group": 3}}, "group must be the name of a column, got 3"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        visits(tmp_path, **options)


def test_a_group_that_is_no_column_gets_the_nearest(tmp_path: Path) -> None:
    source = visits(tmp_path, split={"train": "50%", "val": "50%", "group": "patients"})
    with pytest.raises(DataError, match="no column is called 'patients'; did you mean 'patient'"):
        source.load()
