"""The `model:` list as planned layers: fields checked, shapes inferred, nothing built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gradcli.config import layers as on_values
from gradcli.config import layers_image as on_images
from gradcli.config import layers_sequence as on_sequences
from gradcli.config.fields import Count, Layers
from gradcli.config.node import Node, Report, describe
from gradcli.config.schema import Schema, check, meant, schema_of
from gradcli.config.signal import Fitted, Signal
from gradcli.errors import ConfigError, GradcliError, Place, ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn

MAX_LAYERS = 10_000

LAYERS: dict[str, Callable[..., Fitted]] = {
    "flatten": on_values.flatten,
    "linear": on_values.linear,
    "embed": on_values.embed,
    "conv": on_images.conv,
    "maxpool": on_images.maxpool,
    "avgpool": on_images.avgpool,
    "batchnorm": on_images.batchnorm,
    "layernorm": on_values.layernorm,
    "lstm": on_sequences.lstm,
    "gru": on_sequences.gru,
    "rnn": on_sequences.rnn,
    "dropout": on_values.dropout,
    "relu": on_values.relu,
    "gelu": on_values.gelu,
    "tanh": on_values.tanh,
    "sigmoid": on_values.sigmoid,
    "softmax": on_values.softmax,
}


def repeat(times: Count, layers: Layers) -> None:
    """The layers `times` times, each time with parameters of their own."""


def residual(layers: Layers) -> None:
    """The input added to what the layers make of it."""


def block(layers: Layers, of: str = "") -> None:
    """Layers one after another, shown as one; each use of one of `blocks:` is such a layer."""


CONTAINERS: dict[str, Callable[..., None]] = {
    "repeat": repeat,
    "residual": residual,
    "block": block,
}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def layer_schema(kind: str) -> Schema:
    """The schema of the layer or container called `kind`."""
    return schema_of(LAYERS[kind], 1) if kind in LAYERS else schema_of(CONTAINERS[kind])


@dataclass(frozen=True)
class PlannedLayer:
    """A layer with its shapes, ready to be made.

    Attributes:
        index: where it stands, `3` or `3.1` inside a container.
        given_name: its `name:`, or empty.
        fields: every key with its value, defaults included.
        make: builds the module.
        schema: of the keys.
    """

    index: str
    kind: str
    given_name: str
    fields: dict[str, Any]
    input: Signal
    output: Signal
    parameters: int
    make: Callable[[], nn.Module]
    place: Place
    schema: Schema
    children: tuple[PlannedLayer, ...] = ()

    @property
    def title(self) -> str:
        """`linear 'head'`, `linear 128` or `gelu`: how messages and tables call it."""
        kind = self.fields["of"] or self.kind if self.kind == "block" else self.kind
        if self.given_name:
            return f"{kind} '{self.given_name}'"
        schema = self.schema
        if schema.first is None or self.kind in ("residual", "block"):
            return kind
        value = self.fields.get(schema.first)
        told = value != schema.model.model_fields[schema.first].default
        plain = isinstance(value, int | float | str)
        return f"{self.kind} {value}" if plain and told else self.kind

    def flat(self) -> list[PlannedLayer]:
        """This layer and all inside it."""
        return [self, *(deep for child in self.children for deep in child.flat())]


class Planner:
    """Walks the model once, passing the shape along; goes on after a mistake without shapes."""

    def __init__(
        self, report: Report, own: Mapping[str, Callable[..., Fitted]] | None = None
    ) -> None:
        self.report = report
        self.layers = {**LAYERS, **(own or {})}
        self.names: dict[str, Place] = {}
        self.count = 0
        self.trail: list[str] = []

    def plan(
        self, node: Node, signal: Signal | None, above: str = ""
    ) -> tuple[list[PlannedLayer], Signal | None]:
        """The layers of a list, and what leaves the last; None where a mistake hides it."""
        planned: list[PlannedLayer] = []
        for position, item in enumerate(node.list()):
            layer = self._layer(item, signal, f"{above}{position}")
            signal = layer.output if layer else None
            if layer:
                planned.append(layer)
        return planned, signal

    def _layer(self, node: Node, signal: Signal | None, index: str) -> PlannedLayer | None:
        self.count += 1
        if self.count > MAX_LAYERS:
            raise ConfigError(f"a model has at most {MAX_LAYERS} layers", place=node.place)
        written = self._written(node, index)
        if written is None:
            return None
        kind, fields, place = written
        name, fields = self._name(fields, kind, index)
        where = f"layer {index}, {kind}: "
        values = check(fields, self._schema(kind), where, self.report)
        if kind in CONTAINERS:
            return self._container(kind, name, fields, values, signal, index, place)
        if values is None or signal is None:
            return None
        try:
            fitted = self.layers[kind](signal, **values)
        except ShapeError as error:
            self._does_not_fit(error, kind, name, index, place)
            return None
        self.trail.append(f"{index} {kind} -> {fitted.output}")
        shown = {key.rstrip("_"): value for key, value in values.items()}
        schema = self._schema(kind)
        return PlannedLayer(index, kind, name, shown, signal, *fitted, place, schema)

    def _schema(self, kind: str) -> Schema:
        own = kind in self.layers and kind not in LAYERS
        return schema_of(self.layers[kind], 1) if own else layer_schema(kind)

    def _does_not_fit(
        self, error: ShapeError, kind: str, name: str, index: str, place: Place
    ) -> None:
        title = f"{kind} '{name}'" if name else kind
        before = (f"before it: {', '.join(self.trail[-4:])}",) if self.trail else ()
        message = f"layer {index}, {title}: {error.message}"
        self.report.errors.append(ShapeError(message, place=place, notes=before))

    def _written(self, node: Node, index: str) -> tuple[str, Node, Place] | None:
        """Kind and fields of `name`, `name: value` or `name: {fields}`."""
        if node.broken:
            return None
        if isinstance(node.value, str):
            kind, value, place = node.value, Node({}, node.place), node.place
        elif len(node.map()) == 1:
            [(kind, value)] = node.map().items()
            place = node.keys[kind]
        else:
            self._not_a_layer(node, index)
            return None
        if kind not in self.layers and kind not in CONTAINERS:
            self._unknown(kind, index, place)
            return None
        if value.broken:
            return None
        if isinstance(value.value, dict):
            return kind, value, place
        first = self._schema(kind).first
        if first is None:
            self.report.error("E104", f"layer {index}: {kind} takes no value", value.place)
            return None
        return kind, Node({first: value}, value.place, {first: value.place}), place

    def _not_a_layer(self, node: Node, index: str) -> None:
        keys = list(node.map())
        notes: tuple[str, ...] = ()
        if keys:
            inner = ", ".join(f"{key}: ..." for key in keys[1:])
            notes = (f"fields go inside: {keys[0]}: {{..., {inner}}}",)
        self.report.error(
            "E104",
            f"layer {index} must be a name, name: value or name: {{fields}}, got "
            + (f"a map of {len(keys)} keys" if isinstance(node.value, dict) else describe(node)),
            node.place,
            notes=notes,
        )

    def _unknown(self, kind: str, index: str, place: Place) -> None:
        known = {**self.layers, **CONTAINERS}
        self.report.error(
            "E102",
            f"layer {index}: no layer is called '{kind}'",
            place,
            caret=meant(kind, known),
            notes=(f"layers: {', '.join(known)}",),
        )

    def _name(self, fields: Node, kind: str, index: str) -> tuple[str, Node]:
        """The layer's own name, and its fields without it."""
        given = fields.map().get("name")
        if given is None:
            return "", fields
        rest = replace(
            fields, value={key: item for key, item in fields.map().items() if key != "name"}
        )
        if not isinstance(given.value, str) or not _NAME.fullmatch(given.value):
            if not given.broken:
                self.report.error(
                    "E104",
                    f"layer {index}, {kind}: name must be letters, digits, _ or -, beginning with "
                    f"a letter, got {describe(given)}",
                    given.place,
                )
            return "", rest
        first = self.names.setdefault(given.value, given.place)
        if first is not given.place:
            self.report.error(
                "E106",
                f"two layers are named '{given.value}': at {first} and at {given.place}",
                given.place,
            )
        return given.value, rest

    def _container(
        self,
        kind: str,
        name: str,
        fields: Node,
        values: dict[str, Any] | None,
        signal: Signal | None,
        index: str,
        place: Place,
    ) -> PlannedLayer | None:
        inside = fields.map().get("layers")
        if inside is None:
            return None
        if not inside.list() and isinstance(inside.value, list):
            self.report.error("E104", f"layer {index}: {kind} has no layers", inside.place)
            return None
        mistakes = len(self.report.errors)
        times = values["times"] if values and kind == "repeat" else 1
        planned: list[PlannedLayer] = []
        end = signal
        for turn in range(times):
            prefix = f"{index}.{turn}." if kind == "repeat" else f"{index}."
            more, end = self.plan(inside, end, prefix)
            planned += more
            new = self.report.errors[mistakes:]
            if new and values and kind == "block":
                _say_where_used(new, values["of"], place)
            if new:
                return None
        if values is None or signal is None or end is None:
            return None
        if kind == "residual" and end != signal:
            self._does_not_fit(
                ShapeError(f"the input is {signal}, its layers give {end}; a sum needs them equal"),
                kind,
                name,
                index,
                place,
            )
            return None
        shown = {**values, "layers": written_layers(planned[: len(inside.list())])}
        parameters = sum(layer.parameters for layer in planned)
        make = _maker(kind, planned)
        return PlannedLayer(
            index,
            kind,
            name,
            shown,
            signal,
            end,
            parameters,
            make,
            place,
            self._schema(kind),
            tuple(planned),
        )


def _say_where_used(errors: Sequence[GradcliError], of: str, place: Place) -> None:
    for error in errors:
        error.notes += (f"in block '{of}', used at {place}",)


def _maker(kind: str, planned: Sequence[PlannedLayer]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from gradcli.config.modules import Residual
        from gradcli.engine import nn

        container = Residual if kind == "residual" else nn.Sequential
        return container(*(layer.make() for layer in planned))

    return make


def written_layers(planned: Sequence[PlannedLayer]) -> list[Any]:
    """The layers as they would be written in YAML with every field."""
    written: list[Any] = []
    for layer in planned:
        fields = {key: _listed(value) for key, value in layer.fields.items() if value is not None}
        if layer.given_name:
            fields["name"] = layer.given_name
        written.append({layer.kind: fields} if fields else layer.kind)
    return written


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
