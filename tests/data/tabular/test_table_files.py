"""Tables in files of every format, and in several files: the same samples as from one of CSV."""

from __future__ import annotations

import csv as rows_of_csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradcli.data import csv
from gradcli.data.csv import CsvSource
from gradcli.data.dataset import LoadedData
from gradcli.errors import DataError

HEADER = ["area", "rooms", "city", "price"]
ROWS = [
    [f"{at * 0.37 + 1:.3f}" if at % 9 else "", str(at % 5), "ABC"[at % 3], "hi" if at % 2 else "lo"]
    for at in range(60)
]


def write_csv(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        rows_of_csv.writer(file).writerows([HEADER, *rows])


def write_lines(path: Path, rows: list[list[str]]) -> None:
    cells = [[float(row[0]) if row[0] else None, int(row[1]), *row[2:]] for row in rows]
    lines = [json.dumps(dict(zip(HEADER, row, strict=True))) for row in cells]
    path.write_text("\n".join(lines))


def write_columns(path: Path, rows: list[list[str]], form: str) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
    from pyarrow import feather, parquet

    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    columns[0] = [float(cell) if cell else None for cell in columns[0]]
    columns[1] = [int(cell) for cell in columns[1]]
    table = pa.table(dict(zip(HEADER, columns, strict=True)))
    (parquet.write_table if form == "parquet" else feather.write_feather)(table, str(path))


WRITERS: dict[str, Callable[[Path, list[list[str]]], None]] = {
    "csv": write_csv,
    "jsonl": write_lines,
    "parquet": lambda path, rows: write_columns(path, rows, "parquet"),
    "feather": lambda path, rows: write_columns(path, rows, "feather"),
}


@pytest.fixture
def source(tmp_path: Path) -> CsvSource:
    path = tmp_path / "t.csv"
    write_csv(path, ROWS)
    return CsvSource(
        file=str(path),
        target="price",
        numeric=("area", "rooms"),
        category=("city",),
        missing="mean",
        cache=str(tmp_path / "cache"),
    )


def content(data: LoadedData) -> Any:
    return [
        (name, part.inputs.tolist(), part.targets.tolist()) for name, part in data.splits.items()
    ]


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_samples_of_csv(
    form: str, prepared: bool, source: CsvSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[form](tmp_path / "table", ROWS)
    plain = source.load()
    if prepared:
        monkeypatch.setattr(csv, "small", lambda *paths: False)
    other = replace(source, file="table").locate(tmp_path)
    data = other.load()
    assert content(data) == content(plain)
    assert vars(data.facts) == vars(plain.facts)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("form", WRITERS)
def test_files_of_a_pattern_are_one_table(
    form: str, prepared: bool, source: CsvSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "[1] parts"
    folder.mkdir()
    for name, begin in (("B", 0), ("a", 20), ("b", 40)):
        WRITERS[form](folder / name, ROWS[begin : begin + 20])
    if prepared:
        monkeypatch.setattr(csv, "small", lambda *paths: False)
    data = replace(source, file="[Bab]").locate(folder).load()
    assert content(data) == content(source.load())
    assert data.files == {
        f"train[{at}]": str(folder / name) for at, name in enumerate(("B", "a", "b"))
    }
    assert len(set(data.sha256.values())) == 3


def test_a_pattern_that_matches_nothing_is_refused(source: CsvSource, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data file matches the pattern 'parts/\*\.csv'"):
        replace(source, file="parts/*.csv").locate(tmp_path)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(
    source: CsvSource, tmp_path: Path
) -> None:
    write_csv(tmp_path / "t[1].csv", ROWS)
    write_csv(tmp_path / "t1.csv", ROWS[:30])
    data = replace(source, file="t[1].csv").locate(tmp_path).load()
    assert data.files == {"train": str(tmp_path / "t[1].csv")}


@pytest.mark.parametrize("form", WRITERS)
def test_new_data_may_have_every_format(form: str, source: CsvSource, tmp_path: Path) -> None:
    data = source.load()
    path = tmp_path / "new"
    WRITERS[form](path, ROWS)
    unseen, expected = data.read(path), data.read(Path(source.file))
    assert unseen.inputs.tolist() == expected.inputs.tolist()
    assert unseen.names[0] == ("new:2" if form == "csv" else "new:1")
    labelled = source.new_split(path, data.facts)
    assert (
        labelled.split.targets.tolist()
        == source.new_split(Path(source.file), data.facts).split.targets.tolist()
    )
