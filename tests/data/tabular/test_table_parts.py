"""Several files as one table."""

from __future__ import annotations

from functools import partial

import pytest

from gradcli.data.tabular.collected import Gaps, TypedTable, collect
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.json_reader import JsonLinesReader
from gradcli.data.tabular.parts import PartsReader
from gradcli.data.tabular.reader import MOST_WORDS, Role, TableReader
from gradcli.errors import DataError

REFUSE = Gaps("error", {})


def csv(name: str, text: str) -> TableReader:
    return CsvReader(iter([text]), name)


def lines(name: str, text: str) -> TableReader:
    return JsonLinesReader(iter([text]), name)


def parts(*texts: str) -> PartsReader:
    names = (f"{at}.csv" for at in range(len(texts)))
    return PartsReader([partial(csv, *pair) for pair in zip(names, texts, strict=False)], "*.csv")


def table(*texts: str, **roles: Role) -> TypedTable:
    return collect(parts(*texts), roles, REFUSE)


def test_the_rows_of_all_files_are_one_table() -> None:
    several = table("n,w\n1,b\n2,a\n", "n,w\n", "n,w\n3,c\n4,b\n", n="number", w="word")
    whole = collect(csv("t", "n,w\n1,b\n2,a\n3,c\n4,b\n"), {"n": "number", "w": "word"}, REFUSE)
    assert several.numbers == whole.numbers
    assert several.words == whole.words


def test_a_row_is_known_by_its_file_and_its_number_there() -> None:
    several = table("n\n1\n2\n", "n\n", "n\n3\n", n="number")
    assert [several.locate(number) for number in several.rows] == [
        ("0.csv", 2),
        ("0.csv", 3),
        ("2.csv", 2),
    ]


def test_a_mistake_names_its_file_and_the_row_in_it() -> None:
    with pytest.raises(DataError, match=r"^1\.csv: row 3, column 1 \(n\): expected a number"):
        table("n\n1\n", "n\n2\nx\n", n="number")
    with pytest.raises(DataError, match=r"^1\.csv: row 3, column 2: 1 cell"):
        table("n,m\n1,1\n", "n,m\n2,2\n3\n", n="number")


def test_a_file_whose_header_is_another_one_is_refused_with_both_names() -> None:
    for header, what in (
        ("n,v", "it has no 'w'"),
        ("n,w,v", "'v' is not among those"),
        ("w,n", "they are in another order"),
    ):
        with pytest.raises(DataError) as caught:
            table("n,w\n1,a\n", f"{header}\n", n="number")
        assert caught.value.message == f"1.csv: its columns are not those of 0.csv: {what}"


def test_a_column_that_may_be_either_is_judged_by_all_files() -> None:
    several = table("a,b\n1,1\n", "a,b\nx,2\n", "a,b\n3,3\n", a="any", b="any")
    assert list(several.numbers) == ["b"]
    assert list(several.words["a"].table) == ["1", "3", "x"]
    half = MOST_WORDS // 2 + 1
    texts = [
        "a\n" + "\n".join(f"w{at}" for at in range(start, start + half)) for start in (0, half)
    ]
    assert not table(*texts, a="any").words


def test_a_row_of_json_lines_counts_from_1() -> None:
    reader = lines("t.jsonl", '{"n": 1}\n{"n": "x"}\n')
    with pytest.raises(DataError, match=r"^t\.jsonl: row 2, column 1 \(n\): expected a number"):
        collect(reader, {"n": "number"}, REFUSE)
