"""The JSON Schema of a whole config, for editors: made from the same signatures that check it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gradcli.config.blocks import form
from gradcli.config.containers import CONTAINERS
from gradcli.config.grouping import GROUPS, grouping
from gradcli.config.inits import INITS, filling
from gradcli.config.layer_names import OLD_NAMES, spellings
from gradcli.config.layers import LAYERS
from gradcli.config.lora import Lora
from gradcli.config.losses import LOSSES
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.planner import layer_schema, recomputed
from gradcli.config.schedules import SCHEDULES
from gradcli.config.schema import Schema, schema_of
from gradcli.config.sections import Pretrained, top
from gradcli.data import DATASETS
from gradcli.train.job import TrainSettings
from gradcli.train.metrics import METRICS

Json = dict[str, Any]

_REFERENCE: Json = {"type": "string", "pattern": r"^\$[A-Za-z_]", "description": "$a.b"}


def json_schema() -> Json:
    """The schema, with every name and key of this version."""
    definitions: Json = {}
    init = _choice(INITS, definitions, filling)
    definitions["init"] = {"anyOf": [init, {"type": "array", "items": init, "minItems": 1}]}
    definitions["layer"] = _layer(definitions)
    properties = _keys(schema_of(top), definitions)
    properties |= {
        "data": _or_own(DATASETS, definitions),
        "loss": _or_own(LOSSES, definitions),
        "optim": _optim(definitions),
        "schedule": _choice(SCHEDULES, definitions),
        "train": _map(schema_of(TrainSettings), definitions),
        "pretrained": _map(schema_of(Pretrained), definitions),
        "lora": _map(schema_of(Lora), definitions),
        "model": {"anyOf": [_layer_list(), {"type": "object"}]},
        "blocks": {"type": "object", "additionalProperties": _block(definitions)},
        "metrics": {"type": "array", "items": _metric(definitions), "uniqueItems": True},
        "extends": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "Files to lay this one over, relative to it.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradcli config",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        # A file that extends another may leave any section to it.
        "anyOf": [
            {"required": ["gradcli", "data", "model", "loss", "optim", "train"]},
            {"required": ["extends"]},
        ],
        "$defs": definitions,
    }


def _block(definitions: Json) -> Json:
    block = _map(schema_of(form), definitions)
    block["properties"]["layers"] = _layer_list()
    return block


def _layer_list() -> Json:
    return {"type": "array", "items": {"$ref": "#/$defs/layer"}, "minItems": 1}


def _layer(definitions: Json) -> Json:
    """A layer: a name, or a map with the name as its only key."""
    rows: Mapping[str, Callable[..., Any]] = {**LAYERS, **CONTAINERS}
    forms = _other_names([*rows, *OLD_NAMES])  # the file's blocks, and own layers
    bare: list[str] = []
    recompute_keys = _keys(schema_of(recomputed), definitions)
    for kind, make in rows.items():
        schema, names = layer_schema(kind), spellings(kind)
        fields = _map(schema, definitions)
        fields["properties"] |= {"name": {"type": "string"}, **recompute_keys}
        if kind not in CONTAINERS:
            fields["properties"]["init"] = {"$ref": "#/$defs/init"}
        if kind in CONTAINERS:
            inside = {"branches": {"type": "array", "items": _layer_list()}}
            inside |= {"layers": _layer_list(), "shortcut": _layer_list()}
            keys = fields["properties"]
            keys.update({key: inside[key] for key in keys.keys() & inside.keys()})
        if not fields.get("required"):
            bare += names
        values = [fields]
        if schema.first:
            values.append(fields["properties"][schema.first])
        forms += [_under_its_name(name, make, values) for name in names]
    return {"anyOf": [{"enum": bare}, *forms]}


def _other_names(rows: Iterable[str]) -> list[Json]:
    """Schemas for a name outside the table, alone or as the only key of a map."""
    name: Json = {"not": {"enum": list(rows)}}
    return [
        {"type": "string", **name},
        {"type": "object", "propertyNames": name, "minProperties": 1, "maxProperties": 1},
    ]


def _under_its_name(kind: str, make: Callable[..., Any], values: list[Json]) -> Json:
    return {
        "type": "object",
        "description": schema_of(make).doc,
        "properties": {kind: {"anyOf": values}},
        "required": [kind],
        "additionalProperties": False,
    }


def _metric(definitions: Json) -> Json:
    """A metric: a name, or a map with the name as its only key."""
    forms = _other_names(METRICS)  # own metrics
    for kind, make in METRICS.items():
        fields = _map(schema_of(make), definitions)
        fields["properties"]["name"] = {"type": "string"}
        first = schema_of(make).first
        values = [fields, *([fields["properties"][first]] if first else [])]
        forms.append(_under_its_name(kind, make, values))
    return {"anyOf": [{"enum": list(METRICS)}, *forms]}


def _choice(
    table: Mapping[str, Callable[..., Any]],
    definitions: Json,
    shared: Callable[..., Any] | None = None,
) -> Json:
    """A section that is a name, or a map with `name`, its keys and those that all share."""
    more = _keys(schema_of(shared), definitions) if shared else {}
    forms: list[Json] = []
    bare: list[str] = []
    for name, make in table.items():
        form = _map(schema_of(make), definitions)
        if not form.get("required"):
            bare.append(name)
        form["properties"] = {"name": {"const": name}, **form["properties"], **more}
        form["required"] = ["name", *form.get("required", [])]
        forms.append({"description": schema_of(make).doc, **form})
    return {"anyOf": [{"enum": bare}, *forms]}


def _optim(definitions: Json) -> Json:
    """An optimizer with the keys that all have; its groups take its own keys."""
    section = _choice(OPTIMIZERS, definitions, grouping)
    for row in section["anyOf"][1:]:
        keys = row["properties"]
        group = _map(schema_of(GROUPS[keys["name"]["const"]]), definitions)
        keys["groups"] = {"anyOf": [{"type": "array", "items": group}, _REFERENCE]}
    return section


def _or_own(table: Mapping[str, Callable[..., Any]], definitions: Json) -> Json:
    """One of a table, or what own code adds to it under another name, with keys of its own."""
    name: Json = {"type": "string", "not": {"enum": list(table)}}
    keyed = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    return {"anyOf": [*_choice(table, definitions)["anyOf"], name, keyed]}


def _map(schema: Schema, definitions: Json) -> Json:
    model_schema = schema.model.model_json_schema()
    result: Json = {
        "type": "object",
        "properties": _keys(schema, definitions),
        "additionalProperties": False,
    }
    if "required" in model_schema:
        result["required"] = list(model_schema["required"])
    return result


def _keys(schema: Schema, definitions: Json) -> Json:
    """Each key with its type, or a reference to another value."""
    model_schema = schema.model.model_json_schema()
    definitions.update(model_schema.get("$defs", {}))
    keys: Json = {}
    for key, kind in model_schema.get("properties", {}).items():
        kind.pop("title", None)
        keys[key] = {"anyOf": [kind, _REFERENCE]}
    return keys
