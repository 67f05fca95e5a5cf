"""Every layer and container of YAML: what `check` takes is built and trained, what it refuses not.

A config that `gradcli check` prints as good must not die in `gradcli train`. Each line of the table
is built and run forward and backward here; and random settings of each, right and wrong ones, are
judged by the plan and by the layer itself on numbers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import pytest
from planning import planned
from pydantic import TypeAdapter

from gradcli import engine
from gradcli.config.containers import CONTAINERS
from gradcli.config.inits import INITS
from gradcli.config.layers import LAYERS
from gradcli.config.planned import PlannedLayer, build
from gradcli.config.planner import layer_schema
from gradcli.config.schema import Mistakes
from gradcli.config.tensor_spec import TensorSpec
from gradcli.engine import Tensor, nn
from gradcli.errors import ErrorGroup, GradcliError

INPUTS = [
    TensorSpec((8,)),
    TensorSpec((4, 12)),
    TensorSpec((4, 6, 8)),
    TensorSpec((3,), 5),
]
# A value for each key that some layer requires; a layer with another one fails until it is here.
NEEDED: dict[str, Any] = {
    "out": 6, "kernel": 2, "heads": 3, "groups": 2, "size": 2, "factor": 2, "dim": 6, "cap": 2.0,
    "threshold": 0.1, "times": 2, "layers": ["relu"], "branches": [["relu"], []],
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {"upsample": {"scale": 2.0}}  # one of two is needed


def needed(kind: str, x: TensorSpec) -> dict[str, Any]:
    """The keys without which there is no such layer."""
    fields = layer_schema(kind).model.model_fields.items()
    values = {**NEEDED, "shape": [2, prod(x.shape) // 2]}
    return {key: values[key] for key, field in fields if field.is_required()} | MORE.get(kind, {})


def numbers(x: TensorSpec) -> Tensor:
    if x.vocab is not None:
        return engine.randint(0, x.vocab, (3, *x.shape))
    return engine.randn(3, *x.shape).requires_grad_()


def trained(plan: PlannedLayer) -> None:
    """One step of the layer, which has to be what was planned."""
    engine.manual_seed(3)
    module, x = build(plan), numbers(plan.input)
    y = module(x)
    assert y.shape == (3, *plan.output.shape)
    shared = {id(p): p for p in module.parameters()}.values()
    assert sum(p.numel() for p in shared) == plan.parameters
    if y.requires_grad:
        y.sum().backward()
        assert all(p.grad is not None for p in shared if p.requires_grad)
    for p in shared:
        assert p.isfinite().all().item()


def fitting(kind: str) -> list[TensorSpec]:
    """The inputs that the layer takes, with the keys it needs."""
    found = []
    for x in INPUTS:
        try:
            planned(x, {kind: needed(kind, x)})
            found.append(x)
        except ErrorGroup as refusal:
            assert "needs" in str(refusal), "nothing but the kind of input stands against it"
    assert found, "it fits no input of this test"
    return found


@pytest.mark.parametrize("kind", [*LAYERS, *CONTAINERS])
def test_a_layer_that_is_planned_is_trained(kind: str) -> None:
    for x in fitting(kind):
        [plan] = planned(x, {kind: needed(kind, x)})
        trained(plan)


@pytest.mark.parametrize("name", INITS)
def test_an_init_that_is_planned_fills(name: str) -> None:
    keys = {"constant": {"val": 0.5}, "sparse": {"sparsity": 0.5}}.get(name, {})
    init = {"name": name, **keys}
    for x, layer in ((INPUTS[0], {"linear": {"out": 4, "init": init}}),
                     (INPUTS[2], {"conv": {"out": 4, "kernel": 3, "init": init}})):  # fmt: skip
        try:
            [plan] = planned(x, layer)
        except ErrorGroup:
            assert name in ("eye", "sparse", "dirac")  # for matrices, for convolutions
            continue
        trained(plan)


def values_of(schema: Mapping[str, Any], draw: random.Random) -> Any:
    """A value that a JSON Schema allows, near its ends more often than not."""
    if "anyOf" in schema:
        return values_of(draw.choice(schema["anyOf"]), draw)
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if kind == "array":
        items = schema.get("prefixItems") or [schema["items"]] * draw.randint(1, 3)
        return [values_of(item, draw) for item in items]
    if kind == "string":
        return draw.choice(["2x", "3x"]) if "pattern" in schema else "tokens"
    if kind == "integer":
        least = schema.get("minimum", -3)
        return draw.choice([least, least + 1, draw.randint(least, least + 5)])
    if kind == "number":
        least = max(schema.get("minimum", schema.get("exclusiveMinimum", -2)), -2)
        most = min(schema.get("maximum", schema.get("exclusiveMaximum", 3)), 3)
        inside = draw.uniform(least, most)
        return draw.choice([least, inside, inside]) if "minimum" in schema else inside
    return {"boolean": draw.choice([True, False]), "null": None}[kind]


WRONG = [0, -1, -3, 2.5, "same", "no", True, None, [], [2, 2, 2], {}, 1e300, 2**40, "nan"]


def settings(kind: str, draw: random.Random, wrong: bool) -> dict[str, Any]:
    """Keys with random values; of wrong ones one key has a value of any kind."""
    schema = layer_schema(kind).model.model_json_schema()["properties"]
    share = min(0.4, 4 / max(1, len(schema)))  # of many keys few, as some exclude each other
    chosen = {key: values_of(item, draw) for key, item in schema.items() if draw.random() < share}
    if wrong and schema:
        chosen[draw.choice(list(schema))] = draw.choice(WRONG)
    return chosen


def cases(kind: str) -> Iterator[tuple[TensorSpec, dict[str, Any]]]:
    draw, inputs = random.Random(f"{kind} 7"), fitting(kind)
    for wrong in (False, True):
        for _ in range(20):
            x = draw.choice(inputs)
            yield x, needed(kind, x) | settings(kind, draw, wrong)


@pytest.mark.parametrize("kind", LAYERS)
def test_check_takes_the_settings_that_train_takes(kind: str) -> None:
    taken = 0
    for x, fields in cases(kind):
        if fields.get("tied") is not None:  # there is no embed layer here
            fields["tied"] = None
        try:
            [plan] = planned(x, {kind: fields})
        except ErrorGroup as refusal:
            assert refused_by_the_layer(kind, x, fields), (x, fields, str(refusal))
        else:
            trained(plan)
            taken += 1
    assert taken >= 8, "few random settings were right"
    assert taken < 40 or not layer_schema(kind).hints, "no random settings were wrong"


def refused_by_the_layer(kind: str, x: TensorSpec, fields: dict[str, Any]) -> bool:
    """Whether the keys do not fit their types, or the layer itself takes no such input."""
    schema = layer_schema(kind)
    try:
        values = schema.values(fields)
    except Mistakes:
        return True
    try:
        module = LAYERS[kind].maker(x, values)()
        module(numbers(x)).sum().backward()
    except GradcliError:
        return True
    return False


def test_the_values_that_are_drawn_are_right() -> None:
    draw = random.Random(1)
    for kind in LAYERS:
        for key, item in layer_schema(kind).model.model_json_schema()["properties"].items():
            adapter = TypeAdapter(layer_schema(kind).hints[key])
            for _ in range(5):
                adapter.validate_json(json.dumps(values_of(item, draw)), strict=True)


# Layers of several inputs, parts of others, and those that no config has asked for yet.
NOT_IN_YAML = {
    "AlphaDropout", "Bilinear", "GRUCell", "LSTMCell", "LoRALinear", "LocalResponseNorm",
    "MultiheadAttention", "RNNCell", "RotaryEmbedding", "Transformer", "TransformerDecoder",
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "ZeroPad1d",
    "ZeroPad2d",
}  # fmt: skip


def test_a_layer_of_the_engine_has_a_name_in_yaml_or_is_named_here() -> None:
    uses = [(x, kind, needed(kind, x)) for kind in LAYERS for x in fitting(kind)]
    for mode in ("reflect", "replicate", "circular"):
        uses += [(x, "pad", {"size": 1, "mode": mode}) for x in fitting("pad")]
    modules = [
        module
        for x, kind, fields in uses
        for plan in planned(x, {kind: fields})
        for module in build(plan).modules()
    ]
    in_yaml = {kind.__name__ for module in modules for kind in type(module).__mro__}
    layers = {name for name, kind in nn.LAYERS.items() if "loss" not in kind.__module__}
    assert layers - in_yaml == NOT_IN_YAML
