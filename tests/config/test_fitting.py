"""What is taken without pydantic is what pydantic takes, with the same values."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from gradcli.config.blocks import form
from gradcli.config.containers import CONTAINERS
from gradcli.config.fitting import DoubtfulValue
from gradcli.config.grouping import GROUPS, grouping
from gradcli.config.inits import INITS
from gradcli.config.layers import LAYERS
from gradcli.config.losses import LOSSES
from gradcli.config.model import validated
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.planner import recomputed
from gradcli.config.schedules import SCHEDULES
from gradcli.config.schema import Mistakes, Schema, schema_of
from gradcli.config.sections import Pretrained, top
from gradcli.data import DATASETS
from gradcli.train.job import TrainSettings
from gradcli.train.metrics import METRICS

TABLES = [CONTAINERS, GROUPS, INITS, LAYERS, LOSSES, OPTIMIZERS, SCHEDULES, DATASETS, METRICS]
ROWS = [row for table in TABLES for row in table.values()]
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 17, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63, 10**400),
    *(-0.0, 0.0, 0.5, 0.999, 1.0, 2.5, -1e-9, 1e300, float("inf"), float("nan")),
    *("", "a", "same", "global", "mean", "5%", "100.5%", "5%\n", "4x", "0x", "val.loss", "\ud800"),
]
NESTED: list[Any] = [
    *([], [[]], [1], [1, 2], [1, 2.5], [0, 0, 1, 1], [1, True], ["a"], ["a", "b"], [None], [-1, 1]),
    *({}, {"a": 1}, {"a": "b"}, {"a": {"b": [1.5]}}, {"a": float("nan")}, ["\ud800"]),
    *({"decay": 0.9}, {"decay": 1}, {"decay": 0.5, "warmup": False}, {"decay": "a"}, {"warmup": 1}),
    *({"metric": "val.loss"}, {"metric": "a", "patience": 0}, {"metric": "a", "min_delta": 0}),
]


def keys() -> list[Schema]:
    """Each kind of key that a config has, alone."""
    kinds: dict[str, Schema] = {}
    for make in (*ROWS, form, grouping, recomputed, Pretrained, top, TrainSettings):
        schema = schema_of(make)
        for key, hint in schema.hints.items():
            kinds[f"{hint}"] = replace(schema, hints={key: hint})
    return list(kinds.values())


@pytest.mark.parametrize("schema", keys(), ids=lambda one: f"{one.make.__name__}.{one.first}")
def test_what_is_taken_is_what_pydantic_takes(schema: Schema) -> None:
    for value in SCALARS + NESTED:
        plain = {schema.first: value}
        try:
            taken = schema.fitting(json.loads(json.dumps(plain, allow_nan=False)))
            json.dumps(plain, ensure_ascii=False).encode()
        except (DoubtfulValue, ValueError):
            continue
        judged = validated(schema, plain)
        assert repr(taken) == repr(judged), value
        assert taken == judged


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (float | int, [1, 1.0]),
        (int | float, [1, 1.0]),
        (Literal[1, 2], [1, True, 1.0]),
        (Literal["a"] | str, ["a"]),
        (tuple[float, ...] | tuple[int, int], [[1, 2]]),
    ],
    ids=str,
)
def test_of_types_that_share_values_pydantic_chooses(hint: Any, values: list[Any]) -> None:
    make = replace(schema_of(top), hints={"gradcli": hint})
    for value in values:
        with contextlib.suppress(DoubtfulValue):
            taken = make.fitting({"gradcli": value})
            assert repr(taken) == repr(validated(make, {"gradcli": value}))


@pytest.mark.parametrize("make", ROWS, ids=lambda row: schema_of(row).make.__name__)
def test_defaults_are_those_of_pydantic(make: Any) -> None:
    schema = schema_of(make)
    try:
        taken = schema.fitting({})
    except DoubtfulValue:
        with pytest.raises(Mistakes):
            validated(schema, {})
        return
    assert repr(taken) == repr(validated(schema, {}))


def test_a_default_that_can_be_changed_is_not_shared() -> None:
    first, second = (schema_of(grouping).values({}) for _ in range(2))
    first["no_decay"].append("bias")
    assert second["no_decay"] == []


@pytest.mark.parametrize("value", ["\ud800", float("nan"), 10**5000], ids=type)
def test_what_is_no_json_is_left_to_pydantic(value: Any) -> None:
    with pytest.raises((Mistakes, ValueError)):
        schema_of(top).values({"gradcli": value})


def test_notes_that_pydantic_reads_in_own_code_are_left_to_it() -> None:
    @dataclass
    class Own:
        size: Annotated[int, Field(ge=3)]

    schema = schema_of(Own)
    with pytest.raises(DoubtfulValue):
        schema.fitting({"size": 4})
    assert schema.values({"size": 4}) == {"size": 4}
    with pytest.raises(Mistakes):
        schema.values({"size": 2})
