"""Which element types an op says it takes."""

from __future__ import annotations

import pytest

from gradcli.engine.accepted import accepted, format_types
from gradcli.engine.dtype import DTYPES
from gradcli.engine.op import Op
from gradcli.engine.table import OPS


@pytest.mark.parametrize(
    ("name", "word"),
    [("cross_entropy", "floats"), ("bitwise_and", "whole, bool"), ("add", "all")],
)
def test_the_word_in_the_table(name: str, word: str) -> None:
    op = OPS[name]
    assert isinstance(op, Op)
    assert format_types(accepted(op)) == word


def test_words_and_names() -> None:
    assert format_types(()) == "-"
    assert format_types(tuple(name for name in DTYPES if name != "bool")) == "numbers"
    assert format_types(("int32", "bool")) == "int32, bool"
