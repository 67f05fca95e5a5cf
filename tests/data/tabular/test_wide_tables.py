"""Tables of many columns: what is kept of columns nobody sorted yet stays small."""

from __future__ import annotations

from gradcli.data.column_kinds import MANY, MOST_CATEGORIES, kind_in
from gradcli.data.tabular.cells import CellsReader
from gradcli.data.tabular.collected import Gaps, collect
from gradcli.data.tabular.reader import MOST_WORDS, Role, most_words


def test_the_more_columns_the_fewer_words_of_each_are_kept() -> None:
    def most(columns: int) -> int:
        return most_words({str(i): "any" for i in range(columns)})

    assert most(1) == MOST_WORDS
    assert MOST_CATEGORIES < most(16384) < most(1000) < MOST_WORDS


def test_a_column_of_a_wide_table_is_what_it_is_in_a_narrow_one() -> None:
    texts = [f"text {i}" for i in range(300)]
    columns = {
        "few": [f"w{i % 100}" for i in range(300)],
        "many": [f"w{i % 140}" for i in range(300)],
        "free": texts,
        "number": [f"{i}.5" for i in range(300)],
    }
    others = {str(i): ["1"] * 300 for i in range(10_000)}
    roles: dict[str, Role] = dict.fromkeys([*columns, *others], "any")
    gaps = Gaps("mean", {})
    wide = collect(CellsReader("f", columns | others), roles, gaps)
    narrow = collect(CellsReader("f", columns), dict.fromkeys(columns, "any"), gaps)
    for name in columns:
        assert kind_in(wide, name).kind == kind_in(narrow, name).kind
    assert kind_in(narrow, "free").reason == "another text in every row"
    assert kind_in(wide, "free").reason == "neither numbers nor up to 100 different words"
    assert kind_in(wide, "number").distinct == MANY
