"""The engine's annotations as types of YAML: one set of bounds for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gradcli.config.fields import MAX_INT, describe_type, in_yaml
from gradcli.engine import kind
from gradcli.engine.nn import recurrent


@pytest.mark.parametrize(
    ("hint", "right", "wrong", "says"),
    [
        (kind.Count, [1, MAX_INT], [0, 1.5, MAX_INT + 1, True], "a whole number from 1 to"),
        (kind.Whole, [0], [-1], "a whole number from 0 to"),
        (kind.NotNegative, [0, 2.5], [-0.1], "a finite number >= 0"),
        (kind.Positive, [1e-9], [0], "a finite number > 0"),
        (kind.Portion, [0, 0.5, 1], [-0.1, 1.01], "a number from 0 to 1"),
        (kind.Finite, [-3.5], [float("inf"), float("nan")], "a finite number"),
        (recurrent.Layers, [1, 10_000], [0, 10_001], "a whole number from 1 to 10000"),
        (kind.Count | None, [None, 2], [0], "a whole number from 1 to 2147483647 or null"),
        (Sequence[kind.Count], [(1, 2)], [(1, 0)], "a list (each a whole number from 1"),
    ],
)  # fmt: skip
def test_a_bound_of_the_engine_holds_in_yaml(
    hint: Any, right: list[Any], wrong: list[Any], says: str
) -> None:
    adapter = TypeAdapter(in_yaml(hint))
    assert [adapter.validate_python(value, strict=True) for value in right] == right
    for value in wrong:
        with pytest.raises(ValidationError):
            adapter.validate_python(value, strict=True)
    assert says in describe_type(in_yaml(hint))


def test_the_json_schema_shows_the_ends_of_a_range() -> None:
    assert TypeAdapter(in_yaml(kind.Portion)).json_schema() == {
        "type": "number", "minimum": 0, "maximum": 1,
    }  # fmt: skip
