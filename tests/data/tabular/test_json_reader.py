"""JSON lines: the cells of each row as a CSV file of them would have them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from gradcli.data.tabular.json_reader import JsonLinesReader
from gradcli.data.tabular.reader import Role, TableBlock
from gradcli.errors import DataError


def reader(text: str, size: int = 5) -> JsonLinesReader:
    pieces: Iterator[str] = (text[at : at + size] for at in range(0, len(text), size))
    return JsonLinesReader(pieces, "t.jsonl")


def only(text: str, **roles: Role) -> TableBlock:
    (block,) = reader(text).blocks(roles)
    return block


def refusal(text: str, **roles: Role) -> str:
    with pytest.raises(DataError) as caught:
        list(reader(text).blocks(roles))
    return caught.value.message


def test_the_keys_of_the_first_rows_are_the_header_in_order_of_appearance() -> None:
    assert reader('{"b": 1, "a": 2}\n{"c": 3, "b": 0}\n').header == ["b", "a", "c"]


def test_numbers_keep_the_digits_they_are_written_with() -> None:
    block = only('{"n": 9007199254740993}\n{"n": -1.5e3}\n{"n": "7"}\n', n="number")
    assert list(block.numbers["n"].values) == [9007199254740992.0, -1500.0, 7.0]


def test_null_and_a_key_that_is_not_there_are_gaps() -> None:
    block = only('{"n": null, "w": "x"}\n{"w": null}\n{"n": NaN}\n', n="number", w="word")
    assert all(map(math.isnan, block.numbers["n"].values))
    assert block.numbers["n"].odd == {0: "", 1: "", 2: "NaN"}
    assert [block.words["w"].table[code] for code in block.words["w"].codes] == ["x", "", ""]


def test_truth_and_nested_values_are_words() -> None:
    block = only('{"w": true}\n{"w": false}\n{"w": ["a", {}]}\n', w="word")
    assert list(block.words["w"].table) == ["true", "false", '["a", {}]']


@pytest.mark.parametrize(
    ("text", "row", "what"),
    [
        ('{"a": 1}\n{"a": \n', 2, "not a JSON object: Expecting value"),
        ('{"a": 1}\n\n{"a": 1}\n', 2, "an empty line inside the table"),
        ('{"a": 1, "a": 2}\n', 1, "the key 'a' is there twice"),
        ('{"a": 1}\n[1]\n', 2, "expected a JSON object, found another value"),
        ('{"a": "\\ud800"}\n', 1, r"a half of a surrogate pair, \ud800"),
        ('{"a": ' + "[" * 200_000, 1, "lists or objects inside each other, too deep"),
        ('{"a": 1}\n' * 1000 + '{"b": 1}\n', 1001, "the key 'b' is in none of the first 1000 rows"),
    ],
)
def test_a_mistake_is_told_with_its_row(text: str, row: int, what: str) -> None:
    assert refusal(text, a="number").startswith(f"t.jsonl: row {row}: ")
    assert what in refusal(text, a="number")


def test_rows_above_a_mistake_are_given_first() -> None:
    blocks = reader('{"a": 1}\n{"a": 2}\n{"a"\n').blocks({"a": "number"})
    assert list(next(blocks).numbers["a"].values) == [1.0, 2.0]
    with pytest.raises(DataError, match="row 3"):
        next(blocks)


def test_a_line_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.data.tabular.json_reader.LINE_LIMIT", 50)
    assert "row 2: more than 50 characters" in refusal('{"a": 1}\n{"a": "' + "x" * 99, a="word")


def test_empty_lines_at_the_end_and_a_missing_line_break_are_accepted() -> None:
    assert only('{"a": 1}\r\n{"a": 2}\r\n\r\n\n', a="number").count == 2
    assert only('{"a": 1}\n{"a": 2}', a="number").count == 2


def test_a_table_without_rows_is_refused() -> None:
    assert "no rows" in refusal("\n")
