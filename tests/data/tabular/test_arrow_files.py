"""Parquet and Arrow files: each type of column as numbers, as words, or refused in a sentence."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pytest

from gradcli.data.column_kinds import kind_in
from gradcli.data.tabular.collected import Gaps, collect
from gradcli.data.tabular.reader import Numbers, Role, TableBlock, Words
from gradcli.errors import DataError

pa = pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
ipc = pytest.importorskip("pyarrow.ipc", reason="needs the extra 'tables'")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'tables'")
files = pytest.importorskip("gradcli.data.arrow.files", reason="needs the extra 'tables'")

KINDS = ("Parquet", "Arrow")
GAPS = Gaps("mean", {})
DAY = datetime.datetime(2024, 2, 29, 12, 30)
DIGITS = decimal.Decimal("1234567890123456789.123456789")


def packed(table: Any, kind: str, rows: int = 1000) -> bytes:
    stream = pa.BufferOutputStream()
    if kind == "Parquet":
        parquet.write_table(table, stream, row_group_size=rows)
    else:
        with ipc.new_file(stream, table.schema) as file:
            file.write_table(table, max_chunksize=rows)
    return bytes(stream.getvalue())


def reader(data: bytes, kind: str) -> Any:
    return files.ArrowFileReader(pa.BufferReader(data), len(data), kind, "t")


def blocks(columns: dict[str, Any], kind: str, **roles: Role) -> list[TableBlock]:
    return list(reader(packed(pa.table(columns), kind), kind).blocks(roles))


def numbers(array: Any, kind: str) -> Numbers:
    (block,) = blocks({"c": array}, kind, c="number")
    return block.numbers["c"]


def texts(words: Words) -> list[str]:
    return [words.table[code] for code in words.codes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, 2**53 + 1], pa.int64()), [1.0, float(2**53 + 1)]),
        (pa.array([2**64 - 1], pa.uint64()), [float(2**64 - 1)]),
        (pa.array([-1, 7], pa.int8()), [-1.0, 7.0]),
        (pa.array([0.1, -0.0]), [0.1, -0.0]),
        (pa.array([0.5, 2], pa.float32()), [0.5, 2.0]),
        (pa.array([True, False]), [1.0, 0.0]),
        (pa.array([DIGITS]), [float(DIGITS)]),
        (pa.array(["1.5", " -2e3 ", "\u0661"]), [1.5, -2000.0, 1.0]),
        (pa.array(["7", "8", "7"]).dictionary_encode(), [7.0, 8.0, 7.0]),
        (pa.array([3, 4, 3]).dictionary_encode(), [3.0, 4.0, 3.0]),
    ],
)
def test_numbers_are_those_of_their_digits(array: Any, expected: list[float], kind: str) -> None:
    read = numbers(array, kind)
    assert list(map(repr, read.values)) == list(map(repr, expected))
    assert not read.odd


@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_are_no_numbers_are_told_as_they_are_written(kind: str) -> None:
    read = numbers(pa.array([1.5, None, math.inf, math.nan, 1e39, 0.1]), kind)
    assert list(map(repr, read.values)) == ["1.5", "nan", "nan", "nan", "nan", "0.1"]
    assert read.odd == {1: "", 2: "inf", 3: "nan", 4: "1e+39"}
    assert numbers(pa.array([DAY]), kind).odd == {0: "2024-02-29 12:30:00.000000"}
    assert numbers(pa.nulls(2), kind).odd == {0: "", 1: ""}


@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_does_not_change_the_numbers_beside_it(kind: str) -> None:
    """Numbers of 32 bits are those of 64 bits with the same value, with infinity among them too."""
    read = numbers(pa.array([0.1, None, math.inf], pa.float32()), kind)
    assert read.values[0] == numbers(pa.array([0.1], pa.float32()), kind).values[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["b", "a", None, "b", ""]), ["b", "a", "", "b", ""]),
        (pa.array(["b", "a"], pa.large_string()), ["b", "a"]),
        (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", "", "b"]),
        (pa.DictionaryArray.from_arrays([1, 0, 1], ["a", "a"]), ["a", "a", "a"]),
        (pa.array([2, 1, None]), ["2", "1", ""]),
        (pa.array([1.0, 1e-5, None]), ["1.0", "1e-05", ""]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([datetime.date(2024, 2, 29)]), ["2024-02-29"]),
        (pa.array([decimal.Decimal("1.50")]), ["1.50"]),
    ],
)
def test_words_are_the_text_of_the_cells(array: Any, expected: list[str], kind: str) -> None:
    (block,) = blocks({"c": array}, kind, c="word")
    assert texts(block.words["c"]) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_truth_is_an_input_where_nobody_sorted_the_columns(kind: str) -> None:
    """Its words, true and false, are no numbers, but its cells are."""
    table = pa.table({"c": [True, False, None] * 9, "one": [True] * 27})
    read = collect(reader(packed(table, kind), kind), dict.fromkeys(["c", "one"], "any"), GAPS)
    truth = kind_in(read, "c")
    assert (truth.kind, truth.distinct, truth.gaps) == ("numeric", 2, 9)
    assert kind_in(read, "one").reason == "the same value in every row"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", ["number", "word"])
@pytest.mark.parametrize(
    ("array", "holds"),
    [
        (pa.array([[1], []]), "lists or structs (list<"),
        (pa.array([{"a": 1}]), "lists or structs (struct<"),
        (pa.array([b"a"]), "bytes (binary)"),
        (pa.array([datetime.timedelta(1)]), "durations (duration[us])"),
    ],
)
def test_a_column_of_another_kind_is_refused_if_it_is_used(
    array: Any, holds: str, role: Role, kind: str
) -> None:
    columns = {"a": pa.array([1.0] * len(array)), "c": array}
    with pytest.raises(DataError, match=r"t: column 2 \(c\) holds") as caught:
        blocks(columns, kind, a="number", c=role)
    assert holds in caught.value.message
    (block,) = blocks(columns, kind, a="number", c="any")
    assert "c" not in {*block.numbers, *block.words}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_share_one_table_of_words(kind: str) -> None:
    table = pa.table({"a.b": ["x", "y", "z", "x"], "n": [1, 2, 3, 4], "unused": [[0]] * 4})
    read = list(reader(packed(table, kind, rows=2), kind).blocks({"a.b": "word", "n": "any"}))
    words = [word for block in read for word in texts(block.words["a.b"])]
    assert words == ["x", "y", "z", "x"]
    assert list(read[-1].words["a.b"].table) == ["x", "y", "z"]
    assert [value for block in read for value in block.numbers["n"].values] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_off_is_refused(kind: str) -> None:
    data = packed(pa.table({"n": range(100)}), kind)
    for end in (0, 8, len(data) // 2, len(data) - 1):
        with pytest.raises(DataError, match=f"t: not a whole {kind} file: "):
            list(reader(data[:end], kind).blocks({"n": "number"}))


def test_rows_that_no_bytes_stand_for_are_refused() -> None:
    data = packed(pa.table({"n": pa.nulls(5_000_000)}), "Arrow", rows=5_000_000)
    with pytest.raises(DataError, match="hold more than 200 rows each"):
        list(reader(data, "Arrow").blocks({"n": "number"}))
