"""The `model:` list as planned layers: fields checked, shapes inferred, nothing built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from gradcli.config import layers as on_values
from gradcli.config import layers_activation as activations
from gradcli.config import layers_attention as on_steps
from gradcli.config import layers_norm as norms
from gradcli.config import layers_resize as sizes
from gradcli.config import layers_sequence as on_sequences
from gradcli.config import layers_window as windows
from gradcli.config.containers import CONTAINERS, Use, contain
from gradcli.config.inits import chosen_init, filled
from gradcli.config.node import Node, Report, describe
from gradcli.config.planned import PlannedLayer
from gradcli.config.schema import Schema, check, meant, schema_of
from gradcli.config.sections import Chosen
from gradcli.config.signal import Fitted, Signal
from gradcli.config.ties import Ties
from gradcli.errors import ConfigError, Place, ShapeError

MAX_LAYERS = 10_000

LAYERS: dict[str, Callable[..., Fitted]] = {
    "flatten": on_values.flatten,
    "reshape": on_values.reshape,
    "linear": on_values.linear,
    "embed": on_values.embed,
    "conv": windows.conv,
    "conv_transpose": windows.conv_transpose,
    "conv1d": windows.conv1d,
    "conv1d_transpose": windows.conv1d_transpose,
    "maxpool": windows.maxpool,
    "avgpool": windows.avgpool,
    "maxpool1d": windows.maxpool1d,
    "avgpool1d": windows.avgpool1d,
    "adaptiveavgpool": sizes.adaptiveavgpool,
    "adaptivemaxpool": sizes.adaptivemaxpool,
    "adaptiveavgpool1d": sizes.adaptiveavgpool1d,
    "adaptivemaxpool1d": sizes.adaptivemaxpool1d,
    "upsample": sizes.upsample,
    "pad": sizes.pad,
    "pixelshuffle": sizes.pixelshuffle,
    "pixelunshuffle": sizes.pixelunshuffle,
    "batchnorm": norms.batchnorm,
    "layernorm": on_values.layernorm,
    "groupnorm": norms.groupnorm,
    "instancenorm": norms.instancenorm,
    "rmsnorm": norms.rmsnorm,
    "lstm": on_sequences.lstm,
    "gru": on_sequences.gru,
    "rnn": on_sequences.rnn,
    "positions": on_steps.positions,
    "attention": on_steps.attention,
    "transformer": on_steps.transformer,
    "dropout": on_values.dropout,
    "dropout1d": norms.dropout1d,
    "dropout2d": norms.dropout2d,
    "relu": activations.relu,
    "relu6": activations.relu6,
    "relusquared": activations.relusquared,
    "leakyrelu": activations.leakyrelu,
    "prelu": activations.prelu,
    "elu": activations.elu,
    "selu": activations.selu,
    "celu": activations.celu,
    "gelu": activations.gelu,
    "silu": activations.silu,
    "mish": activations.mish,
    "softplus": activations.softplus,
    "softsign": activations.softsign,
    "hardswish": activations.hardswish,
    "hardsigmoid": activations.hardsigmoid,
    "hardtanh": activations.hardtanh,
    "threshold": activations.threshold,
    "softcap": activations.softcap,
    "tanh": activations.tanh,
    "tanhshrink": activations.tanhshrink,
    "sigmoid": activations.sigmoid,
    "logsigmoid": activations.logsigmoid,
    "softmax": activations.softmax,
    "logsoftmax": activations.logsoftmax,
    "softmin": activations.softmin,
    "glu": activations.glu,
    "swiglu": activations.swiglu,
    "identity": activations.identity,
}


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def layer_schema(kind: str) -> Schema:
    """The schema of the layer or container called `kind`."""
    return schema_of(LAYERS[kind], 1) if kind in LAYERS else schema_of(CONTAINERS[kind])


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
        self.ties = Ties()

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
        init, fields = self._init(kind, fields, where)
        values = check(fields, self._schema(kind), where, self.report)
        if kind in CONTAINERS:
            use = Use(kind, name, fields, values, signal, index, place)
            try:
                return contain(use, self.plan, self.report)
            except ShapeError as error:
                self._does_not_fit(error, kind, name, index, place)
                return None
        if values is None or signal is None:
            return None
        try:
            fitted = self.layers[kind](signal, **values)
            fitted = self.ties.tie(kind, name, values, signal, fitted)
            fitted = self._filled(fitted, init)
        except ShapeError as error:
            self._does_not_fit(error, kind, name, index, place)
            return None
        self.trail.append(f"{index} {kind} -> {fitted.output}")
        shown = {key.rstrip("_"): value for key, value in values.items()}
        shown |= {"init": init.written()} if init else {}
        schema = self._schema(kind)
        return PlannedLayer(index, kind, name, shown, signal, *fitted, place, schema)

    def _schema(self, kind: str) -> Schema:
        own = kind in self.layers and kind not in LAYERS
        return schema_of(self.layers[kind], 1) if own else layer_schema(kind)

    def _init(self, kind: str, fields: Node, where: str) -> tuple[Chosen | None, Node]:
        """What the layer's `init:` names, and its fields without it; a container has none.

        A layer of the user's own may have such a key itself.
        """
        if kind in CONTAINERS or "init" in self._schema(kind).hints:
            return None, fields
        return chosen_init(fields, where.rstrip(": "), self.report)

    @staticmethod
    def _filled(fitted: Fitted, init: Chosen | None) -> Fitted:
        if init is None:
            return fitted
        if not fitted.parameters:
            raise ShapeError(
                f"init '{init.name}' is given, and the layer has no weights of its own"
            )
        return filled(fitted, init.made)

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
