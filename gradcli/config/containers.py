"""Layers that hold layers: repeated, summed, side by side, or shown as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from gradcli import engine
from gradcli.config.fields import Branches, Layers
from gradcli.config.modules import Parallel, Residual
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.planned import PlannedLayer, build, build_all, written_layers
from gradcli.config.schema import Schema, schema_of
from gradcli.config.tensor_spec import TensorSpec, floats
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.kind import Count
from gradcli.errors import GradcliError, Location, ShapeError


def repeat(times: Count, layers: Layers) -> None:
    """Repeats the layers `times` times, each time with new parameters."""


def residual(layers: Layers, shortcut: Layers | None = None) -> None:
    """The output of the layers, added to the input or to the output of the shortcut."""


def parallel(branches: Branches, join: Literal["concat", "add"] = "concat", dim: int = 0) -> None:
    """Applies each branch to the same input; concatenates the outputs along `dim`, or adds them."""


def block(layers: Layers, of: str = "") -> None:
    """Layers in sequence, shown as one layer; each use of an entry of `blocks:` is such a layer."""


CONTAINERS: dict[str, Callable[..., None]] = {
    "repeat": repeat,
    "residual": residual,
    "parallel": parallel,
    "block": block,
}

Plan = Callable[[YamlNode, TensorSpec | None, str], tuple[list[PlannedLayer], TensorSpec | None]]


@dataclass(frozen=True)
class Use:
    """A layer as it is written, and what comes into it; None where a mistake hides it."""

    kind: str
    spelling: str
    name: str
    fields: YamlNode
    values: dict[str, Any] | None
    spec: TensorSpec | None
    index: str
    location: Location
    schema: Schema

    def to_layer(
        self,
        overrides: dict[str, Any],
        output: TensorSpec,
        children: Sequence[PlannedLayer],
        make: Callable[[], nn.Module],
        parameters: int = 0,
    ) -> PlannedLayer:
        """This layer around its children; `overrides` replace some of its values."""
        assert self.spec is not None and self.values is not None
        return PlannedLayer(
            self.index,
            self.kind,
            self.spelling,
            self.name,
            {**self.values, **overrides},
            self.spec,
            output,
            parameters + sum(child.parameters for child in children),
            make,
            self.location,
            self.schema,
            tuple(children),
        )


def contain(use: Use, plan: Plan, report: ErrorReport) -> PlannedLayer | None:
    """The container with its layers planned; None after reporting, or where shapes are hidden."""
    key = "branches" if use.kind == "parallel" else "layers"
    inside = use.fields.map().get(key)
    if inside is None:
        return None
    if not inside.list() and isinstance(inside.value, list):
        report.error("E104", f"layer {use.index}: {use.kind} has no {key}", inside.location)
        return None
    planner = {"residual": _residual, "parallel": _parallel}.get(use.kind, _chain)
    return planner(use, inside, plan, report)


def _chain(use: Use, inside: YamlNode, plan: Plan, report: ErrorReport) -> PlannedLayer | None:
    """Plan `repeat` and `block`."""
    mistakes = len(report.errors)
    times = use.values["times"] if use.values and use.kind == "repeat" else 1
    layers: list[PlannedLayer] = []
    end = use.spec
    for turn in range(times):
        prefix = f"{use.index}.{turn}." if use.kind == "repeat" else f"{use.index}."
        more, end = plan(inside, end, prefix)
        layers += more
        new = report.errors[mistakes:]
        if new and use.values and use.values.get("of"):
            _say_where_used(new, use.values["of"], use.location)
        if new:
            return None
    if use.values is None or use.spec is None or end is None:
        return None
    fields = {"layers": written_layers(layers[: len(inside.list())])}
    return use.to_layer(fields, end, layers, lambda: build_all(layers))


def _residual(use: Use, inside: YamlNode, plan: Plan, report: ErrorReport) -> PlannedLayer | None:
    mistakes = len(report.errors)
    body, end = plan(inside, use.spec, f"{use.index}.")
    shortcut = use.fields.map().get("shortcut")
    around = _way(use, "shortcut", shortcut, plan) if shortcut and shortcut.list() else None
    if len(report.errors) > mistakes or use.values is None or use.spec is None or end is None:
        return None
    start = around.output if around else use.spec
    if end != start:
        what = f"its shortcut gives {start}" if around else f"the input is {start}"
        cure = "" if around else "; a shortcut of layers may change the input"
        raise ShapeError(f"{what}, its layers give {end}; a sum needs them equal{cure}")
    fields = {"layers": written_layers(body)}
    if around:
        fields["shortcut"] = written_layers(around.children)

    def make() -> nn.Module:
        layers = [build(layer) for layer in body]
        return Residual(*layers, shortcut=build(around) if around else None)

    return use.to_layer(fields, end, [*body, *([around] if around else [])], make)


def _parallel(use: Use, inside: YamlNode, plan: Plan, report: ErrorReport) -> PlannedLayer | None:
    mistakes = len(report.errors)
    attempts = [
        _way(use, f"branch {number}", branch, plan) for number, branch in enumerate(inside.list())
    ]
    ways = [way for way in attempts if way]
    if len(report.errors) > mistakes or use.values is None or len(ways) < len(attempts):
        return None
    join, dim = use.values["join"], use.values["dim"]
    ends = [floats(way.output) for way in ways]
    output = _sum(ends) if join == "add" else _side_by_side(ends, dim)
    along = dim + 1 if dim >= 0 else dim  # the batch comes first
    fields = {"branches": [written_layers(way.children) for way in ways]}
    return use.to_layer(
        fields, output, ways, lambda: Parallel(*map(build, ways), join=join, dim=along)
    )


def _way(use: Use, title: str, node: YamlNode, plan: Plan) -> PlannedLayer | None:
    """Plan one branch of a container as a block; without layers it passes its input on."""
    index = f"{use.index}.{title.split()[-1]}"
    layers, end = plan(node, use.spec, f"{index}.")
    if use.spec is None or end is None:
        return None
    values = {"layers": written_layers(layers), "of": title}
    location, schema = node.location, schema_of(block)
    way = Use("block", "block", "", node, values, use.spec, index, location, schema)
    return way.to_layer({}, end, layers, lambda: build_all(layers))


def _sum(ends: Sequence[TensorSpec]) -> TensorSpec:
    for number, end in enumerate(ends):
        if end != ends[0]:
            raise ShapeError(
                f"branch 0 gives {ends[0]}, branch {number} gives {end}; a sum needs them equal"
            )
    return ends[0]


def _side_by_side(ends: Sequence[TensorSpec], dim: int) -> TensorSpec:
    try:
        with engine.device("meta"):
            output = engine.cat([engine.empty(*end.shape) for end in ends], dim)
    except GradcliError as error:
        gives = ", ".join(f"branch {number} gives {end}" for number, end in enumerate(ends))
        raise ShapeError(f"{gives}; concat{error.message.removeprefix('cat')}") from None
    return ends[0].to(*output.shape)


def _say_where_used(errors: Sequence[GradcliError], of: str, location: Location) -> None:
    for error in errors:
        error.notes += (f"in block '{of}', used at {location}",)
