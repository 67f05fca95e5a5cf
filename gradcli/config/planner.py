"""The `model:` list as planned layers: fields checked, shapes inferred, nothing built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradcli.config.containers import CONTAINERS, Use, contain
from gradcli.config.inits import Filling, read_inits, with_inits
from gradcli.config.layer import LayerSpec
from gradcli.config.layer_names import OLD_NAMES
from gradcli.config.layers import LAYERS
from gradcli.config.merge import without
from gradcli.config.node import ErrorReport, YamlNode, describe
from gradcli.config.planned import PlannedLayer
from gradcli.config.schema import Schema, check, schema_of, suggestion
from gradcli.config.tensor_spec import TensorSpec
from gradcli.config.ties import Ties
from gradcli.errors import ConfigError, GradcliError, Location, ShapeError
from gradcli.wording import quantity

MAX_LAYERS = 10_000
# Rows of deviation 1 would drown the positions beside them, and make the first attention one-hot.
ATTENDING = {"positions", "attention", "transformer"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def recomputed(*, recompute: bool = False) -> None:
    """Keep nothing of the layer for backward but its input, and run it there once more."""


def layer_schema(kind: str) -> Schema:
    """The schema of the layer or container called `kind`."""
    return schema_of(LAYERS[kind] if kind in LAYERS else CONTAINERS[kind])


class Planner:
    """Walks the model once, passing the shape along; goes on after a mistake without shapes."""

    def __init__(self, report: ErrorReport, own: Mapping[str, LayerSpec] | None = None) -> None:
        self.report = report
        self.layers: dict[str, LayerSpec] = {**LAYERS, **(own or {})}
        for old, new in OLD_NAMES.items():
            if own and new in own:
                self.layers[old] = LAYERS[new]
        self.names: dict[str, Location] = {}
        self.count = 0
        self.trail: list[str] = []
        self.ties = Ties()
        self.embed_std = 1.0  # where a layer does not say

    def plan(
        self, node: YamlNode, spec: TensorSpec | None
    ) -> tuple[list[PlannedLayer], TensorSpec | None]:
        """The layers of a model, and what leaves the last; None where a mistake hides it."""
        parts = [part for _, part in node.walk()]
        kinds = {key for part in parts for key in part.map()}
        kinds |= {item.value for part in parts for item in part.list() if type(item.value) is str}
        self.embed_std = 0.02 if ATTENDING & kinds else 1.0
        return self._list(node, spec)

    def _list(
        self, node: YamlNode, spec: TensorSpec | None, above: str = ""
    ) -> tuple[list[PlannedLayer], TensorSpec | None]:
        """The planned layers of a list, and the output of the last."""
        layers: list[PlannedLayer] = []
        for position, item in enumerate(node.list()):
            layer = self._layer(item, spec, f"{above}{position}")
            spec = layer.output if layer else None
            if layer:
                layers.append(layer)
        return layers, spec

    def _layer(self, node: YamlNode, spec: TensorSpec | None, index: str) -> PlannedLayer | None:
        self.count += 1
        if self.count > MAX_LAYERS:
            raise ConfigError(f"a model has at most {MAX_LAYERS} layers", location=node.location)
        entry = self._kind_and_fields(node, index)
        if entry is None:
            return None
        spelling, fields, location = entry
        kind = self._kind(spelling)
        name, fields = self._name(fields, spelling, index)
        where = f"layer {index}, {spelling}: "
        inits, fields = self._inits(kind, fields, where)
        recompute, fields = self._recompute(kind, fields, where)
        schema = self._schema(kind)
        values = check(fields, schema, where, self.report)
        if values and kind == "embed" and values["std"] is None:
            values["std"] = self.embed_std
        use = Use(kind, spelling, name, fields, values, spec, index, location, schema)
        if kind in CONTAINERS:
            try:
                layer = contain(use, self._list, self.report)
                times = values["times"] if values and kind == "repeat" else 1
                return replace(layer, recompute=times) if layer and recompute else layer
            except ShapeError as error:
                self._does_not_fit(error.message, spelling, name, index, location)
                return None
        if values is None or spec is None:
            return None
        try:
            return replace(self._leaf(use, inits), recompute=int(recompute))
        except GradcliError as error:
            message, keys = self.layers[kind].explain(error.message, spec)
            locations = [fields.map()[key].location for key in keys if key in fields.map()]
            self._does_not_fit(message, spelling, name, index, (*locations, location)[0])
            return None

    def _leaf(self, use: Use, inits: list[Filling]) -> PlannedLayer:
        """Plan a layer that holds no others, and try it on its input."""
        assert use.values is not None and use.spec is not None
        layer = self.layers[use.kind]
        make = layer.maker(use.spec, use.values)
        trial = layer.run(with_inits(make, inits), use.spec)
        make, parameters = self.ties.tie(use.kind, use.name, use.values, use.spec, make, trial)
        keys: dict[str, Any] = {}
        if inits:
            if not parameters:
                raise ShapeError(
                    f"init '{inits[0].init.name}' is given, and the layer has no weights of its own"
                )
            entries = [filling.as_dict() for filling in inits]
            make, keys["init"] = with_inits(make, inits), entries if entries[1:] else entries[0]
        self.trail.append(f"{use.index} {use.spelling} -> {trial.output}")
        return use.to_layer(keys, trial.output, (), make, parameters)

    def _kind(self, spelling: str) -> str:
        """The name of a layer by this name or an old one; own layers go first."""
        return spelling if spelling in self.layers else OLD_NAMES.get(spelling, spelling)

    def _schema(self, kind: str) -> Schema:
        return schema_of(self.layers[kind]) if kind in self.layers else layer_schema(kind)

    def _inits(self, kind: str, fields: YamlNode, where: str) -> tuple[list[Filling], YamlNode]:
        """Read the layer's `init:` and return its other fields; a container has none.

        A layer of own code may use this key itself.
        """
        if kind in CONTAINERS or "init" in self._schema(kind).hints:
            return [], fields
        return read_inits(fields, where.rstrip(": "), self.report)

    def _recompute(self, kind: str, fields: YamlNode, where: str) -> tuple[bool, YamlNode]:
        """Whether the backward pass computes the layer again, and its other fields.

        A layer of own code may use this key itself.
        """
        flag = fields.map().get("recompute")
        if flag is None or "recompute" in self._schema(kind).hints:
            return False, fields
        alone = replace(fields, value={"recompute": flag})
        values = check(alone, schema_of(recomputed), where, self.report)
        return bool(values and values["recompute"]), without(fields, "recompute")

    def _does_not_fit(
        self, problem: str, kind: str, name: str, index: str, location: Location
    ) -> None:
        title = f"{kind} '{name}'" if name else kind
        before = (f"before it: {', '.join(self.trail[-4:])}",) if self.trail else ()
        message = f"layer {index}, {title}: {problem}"
        self.report.errors.append(ShapeError(message, location=location, notes=before))

    def _kind_and_fields(self, node: YamlNode, index: str) -> tuple[str, YamlNode, Location] | None:
        """Read kind and fields of `name`, `name: value` or `name: {fields}`."""
        if node.broken:
            return None
        entry = node.entry()
        if entry is None:
            self._not_a_layer(node, index)
            return None
        kind, value, location = entry
        if self._kind(kind) not in self.layers and kind not in CONTAINERS:
            self._unknown(kind, index, location)
            return None
        if value.broken:
            return None
        if isinstance(value.value, dict):
            return kind, value, location
        first = self._schema(self._kind(kind)).first
        if first is None:
            self.report.error("E104", f"layer {index}: {kind} takes no value", value.location)
            return None
        return kind, YamlNode({first: value}, value.location, {first: value.location}), location

    def _not_a_layer(self, node: YamlNode, index: str) -> None:
        keys = list(node.map())
        notes: tuple[str, ...] = ()
        if keys:
            inner = ", ".join(f"{key}: ..." for key in keys[1:])
            notes = (f"fields go inside: {keys[0]}: {{..., {inner}}}",)
        self.report.error(
            "E104",
            f"layer {index} must be a name, name: value or name: {{fields}}, got "
            + (
                f"a map of {quantity(len(keys), 'key')}"
                if isinstance(node.value, dict)
                else describe(node)
            ),
            node.location,
            notes=notes,
        )

    def _unknown(self, kind: str, index: str, location: Location) -> None:
        layers = {**self.layers, **CONTAINERS}
        self.report.error(
            "E102",
            f"layer {index}: no layer is called '{kind}'",
            location,
            caret=suggestion(kind, layers),
            notes=(f"layers: {', '.join(layers)}",),
        )

    def _name(self, fields: YamlNode, kind: str, index: str) -> tuple[str, YamlNode]:
        """The layer's own name, and its other fields."""
        name = fields.map().get("name")
        if name is None:
            return "", fields
        rest = without(fields, "name")
        if not isinstance(name.value, str) or not _NAME.fullmatch(name.value):
            if not name.broken:
                self.report.error(
                    "E104",
                    f"layer {index}, {kind}: name must be letters, digits, _ or -, beginning with "
                    f"a letter, got {describe(name)}",
                    name.location,
                )
            return "", rest
        first = self.names.setdefault(name.value, name.location)
        if first is not name.location:
            self.report.error(
                "E106",
                f"two layers are named '{name.value}': at {first} and at {name.location}",
                name.location,
            )
        return name.value, rest
