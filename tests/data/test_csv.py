from __future__ import annotations

import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from idx_bytes import write

from gradcli.data.csv import CsvSource
from gradcli.data.csv_rows import parse_rows
from gradcli.errors import ConfigError, DataError
from gradcli.train.facts import facts_of


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        (b"a,b\n1,2", [["a", "b"], ["1", "2"]]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
        (b'a,b\n"x\ny","say ""hi"", all"\n', [["a", "b"], ["x\ny", 'say "hi", all']]),
        (b"a,b\n1,2\n\n\r\n", [["a", "b"], ["1", "2"]]),
        (b"a,b\n,\n", [["a", "b"], ["", ""]]),
        (b'a,b\n"",x\n', [["a", "b"], ["", "x"]]),
        (b"", []),
    ],
    ids=["plain", "no-end", "bom-crlf", "quoted", "blank-end", "empty-cells", "quoted-empty", "0"],
)
def test_good_tables(text: bytes, rows: list[list[str]]) -> None:
    assert parse_rows(text, "f") == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,b\n1,2\n3\n", "row 3, column 2: 1 cell, the header has 2"),
        (b"a,b\n1,2,3\n", "row 2, column 3: 3 cells, the header has 2"),
        (b'a,b\n1,"2\n', "row 2, column 2: a quote is opened and never closed"),
        (b"a,b\n1,2\0\n", "row 2, column 2: a NUL character"),
        (b'a,b\n"1\0",2\n', "row 2, column 1: a NUL character"),
        (b'a,b\n1,x"y"\n', "row 2, column 2: a quote inside an unquoted cell"),
        (b'a,b\n"1"x,2\n', "row 2, column 1: text after the closing quote: 'x'"),
        (b"a,b\n\n1,2\n", "row 2, column 1: an empty line inside the table"),
        (b"a,b\n1,\xff\n", "f:2: not UTF-8 text: byte 0xff at byte offset 6"),
        (b"x," * 20000, "row 1, column 16385: more than 16384 cells"),
        (b'a,b\n1,"2""\n', "row 2, column 2: a quote is opened and never closed"),
    ],
)
def test_bad_tables(text: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_rows(text, "f")
    assert message in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("quote", [b"", b'"'], ids=["bare", "quoted"])
def test_a_giant_cell_is_refused_quickly(quote: bytes) -> None:
    start = time.process_time()
    with pytest.raises(DataError, match="row 2, column 2: a cell of more than 1048576 characters"):
        parse_rows(b"a,b\n1," + quote + b"x" * 100_000_000 + quote + b"\n", "f")
    assert time.process_time() - start < 2


def table(folder: Path, text: str, **options: Any) -> CsvSource:
    write(folder, table=text.encode())
    usual: dict[str, Any] = {
        "file": "table",
        "target": "y",
        "numeric": ("n",),
        "split": {"train": "100%"},
    }
    return CsvSource(**{**usual, **options}).locate(folder)


@pytest.mark.parametrize("cell", ["abc", '"1,5"', "inf", "-inf", "1e999", "1_0", "0x10", "1 2"])
@pytest.mark.parametrize("missing", ["error", "drop", "mean"])
def test_a_cell_that_is_no_number_is_shown(tmp_path: Path, cell: str, missing: str) -> None:
    made = table(tmp_path, f"y,n\na,1\nb,{cell}\n", missing=missing)
    with pytest.raises(DataError) as caught:
        made.facts()
    shown = cell.strip('"')
    assert f"row 3, column 2 (n): expected a number, found '{shown}'" in str(caught.value)


@pytest.mark.parametrize("cell", ["", "NA", " "])
def test_a_missing_cell_is_refused_unless_allowed(tmp_path: Path, cell: str) -> None:
    made = table(tmp_path, f"y,n\na,1\nb,{cell}\n")
    with pytest.raises(DataError, match=r"row 3, column 2 \(n\).*missing value.*drop"):
        made.facts()
    assert replace(made, missing="mean").facts().sizes == {"train": 2}


def test_nan_is_missing_only_where_missing_is_allowed(tmp_path: Path) -> None:
    made = table(tmp_path, "y,n\na,1\nb,nan\n")
    with pytest.raises(DataError, match="expected a number, found 'nan'"):
        made.facts()
    assert replace(made, missing="drop").facts().sizes == {"train": 1}


@pytest.mark.parametrize("cell", ["1", "+1.5", "-.5", "2.", "1e3", " 7 ", "1E-400"])
def test_numbers_are_read(tmp_path: Path, cell: str) -> None:
    text = f"y,n\na,{cell}\nb,0\n"
    made = table(tmp_path, text, standardize=False).load()
    assert float(cell) in column(made, 0)


def column(dataset: Any, at: int) -> list[float]:
    from gradcli import engine

    split = dataset.splits["train"]
    inputs, _ = split.batch(engine.tensor(list(range(split.size))))
    return [row[at] for row in inputs.tolist()]


def test_columns_are_standardised_by_the_training_split(tmp_path: Path) -> None:
    text = "y,n\n" + "".join(f"a,{i * i}\n" for i in range(50))
    made = table(tmp_path, text, split={"train": 40, "val": 10}).load()
    values = column(made, 0)
    assert statistics.fmean(values) == pytest.approx(0, abs=1e-6)
    assert statistics.pstdev(values) == pytest.approx(1, abs=1e-6)


def test_gaps_are_filled_with_the_mean(tmp_path: Path) -> None:
    text = "y,n,c\na,1,x\na,5,x\na,NA,z\na,3,NA\n"
    made = table(tmp_path, text, missing="mean", category=("c",), standardize=False).load()
    assert sorted(column(made, 0)) == [1, 3, 3, 5]
    assert sorted(column(made, 1)) == pytest.approx([0, 2 / 3, 1, 1])


def test_a_constant_column_becomes_zero(tmp_path: Path) -> None:
    assert column(table(tmp_path, "y,n\na,7\nb,7\n").load(), 0) == [0, 0]


def test_dropped_rows_are_counted_in_a_note(tmp_path: Path) -> None:
    made = table(tmp_path, "y,n\na,1\nb,NA\n,2\n", missing="drop").load()
    assert made.notes == ("table: 2 of 3 rows lack a value and are left out (missing: drop)",)
    assert made.splits["train"].size == 1


def test_a_missing_target_is_never_filled(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 3, column 1 \(y\)"):
        table(tmp_path, "y,n\na,1\n,2\n", missing="mean").facts()


def test_dropping_every_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leaves no rows: each of 1"):
        table(tmp_path, "y,n\na,\n", missing="drop").facts()


@pytest.mark.parametrize("text", ["", "y,n\n"])
def test_an_empty_table_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="the table is empty"):
        table(tmp_path, text).facts()


@pytest.mark.parametrize(
    ("header", "message"),
    [("1,2", "no column is called 'n', 'y'"), ("y,n,n", "column 'n' appears twice")],
)
def test_a_header_that_does_not_fit_shows_both_lists(
    tmp_path: Path, header: str, message: str
) -> None:
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(DataError, match=message) as caught:
        table(tmp_path, f"{header}\n{row}\n").facts()
    assert caught.value.notes == (
        "needed are: n, y",
        f"the file has: {header.replace(',', ', ')}",
    )


def test_the_order_of_columns_in_the_file_does_not_matter(tmp_path: Path) -> None:
    first = column(table(tmp_path, "y,n,m\na,1,8\nb,2,9\n", numeric=("n", "m")).load(), 1)
    again = column(table(tmp_path, "m,y,n\n8,a,1\n9,b,2\n", numeric=("n", "m")).load(), 1)
    assert first == again


def test_classes_are_sorted_by_bytes(tmp_path: Path) -> None:
    facts = table(tmp_path, "y,n\né,1\nb,2\nB,3\n").facts()
    assert facts.labels == ("B", "b", "é")
    assert (facts.classes, facts.target, facts.input) == (3, (), (1,))


def test_a_regression_target_is_a_number(tmp_path: Path) -> None:
    from gradcli import engine

    made = table(tmp_path, "y,n\n1.5,1\n", task="regression").load()
    assert (made.facts.classes, made.facts.target) == (None, (1,))
    y = made.splits["train"].batch(engine.tensor([0]))[1]
    assert (y.tolist(), y.dtype) == ([[1.5]], engine.float32)


@pytest.mark.parametrize(
    "options",
    [{"numeric": ("n", "n")}, {"numeric": ("n", "y")}],
    ids=["twice", "target"],
)
def test_impossible_columns_are_a_config_error(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        CsvSource(**{"file": "f", "target": "y", **options})


def test_predict_leaves_out_what_training_left_out_and_says_so(tmp_path: Path) -> None:
    made = table(tmp_path, "y,n\na,1\nb,5\n", missing="drop").load()
    write(tmp_path, new=b"n,y\nNA,a\n3,NA\n,\n4,b\n", none=b"n\nNA\n")
    unseen = made.read(tmp_path / "new")
    assert (unseen.indices, unseen.names) == ([1, 3], ["new:3", "new:5"])
    assert unseen.notes == ("new: 2 of 4 rows lack a value and are left out (missing: drop)",)
    with pytest.raises(DataError, match="leaves no rows"):
        made.read(tmp_path / "none")


def test_predict_encodes_as_in_training_and_needs_no_target(tmp_path: Path) -> None:
    text = "y,n,c\na,1,x\nb,5,z\nb,3,x\n"
    made = table(tmp_path, text, category=("c",))
    dataset = made.load()
    write(tmp_path, new=b"c,n\nz,3\nx,5\n", odd=b"c,n\nw,3\n", gap=b"c,n\nz,NA\n")
    text = json.dumps(dataset.facts.as_json(), sort_keys=True)
    unseen = made.new_inputs(tmp_path / "new", facts_of(json.loads(text), "a checkpoint"))
    assert unseen.names == ["new:2", "new:3"]
    deviation = statistics.pstdev([1, 5, 3])
    flat = [value for row in unseen.inputs.tolist() for value in row]
    assert flat == pytest.approx([0, 0, 1, 2 / deviation, 1, 0])
    with pytest.raises(DataError, match="unknown category 'w'; known: x, z"):
        dataset.read(tmp_path / "odd")
    with pytest.raises(DataError, match="missing value 'NA'"):
        dataset.read(tmp_path / "gap")
