"""First values of a layer's weights by name: functions of nn.init, whose options are the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from gradcli.config.layer import Make
from gradcli.config.merge import without
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.row import Row
from gradcli.config.schema import check, schema_of
from gradcli.config.sections import NamedSection, choose
from gradcli.config.selection import Some, select
from gradcli.dataclass import dataclass
from gradcli.engine import nn, zeros
from gradcli.engine.kind import Positive
from gradcli.engine.nn import init

_NAMES = (
    "uniform normal trunc_normal constant zeros ones eye dirac xavier_uniform xavier_normal "
    "kaiming_uniform kaiming_normal sparse orthogonal"
)
_NARROWER: dict[str, Any] = {
    "mode": Literal["fan_in", "fan_out"],
    "nonlinearity": Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"],
}

INITS: dict[str, Row] = {
    name: Row(
        getattr(init, f"{name}_"),
        skip=1,
        leave=("generator",),
        types=_NARROWER | ({"std": Positive} if name == "trunc_normal" else {}),
        trial=lambda: zeros(0),
    )
    for name in _NAMES.split()
}


def filling(match: Some | None = None) -> None:
    """Fill what `match`, patterns of names inside the layer; else all of its weights."""


@dataclass(frozen=True)
class Filling:
    """What fills a layer's weights, its parameters of two or more dimensions, or some of them."""

    init: NamedSection
    match: Sequence[str] | None

    def fill(self, module: nn.Module) -> None:
        """Overwrite the matching parameters; each pattern must match some."""
        names = None if self.match is None else select(module, self.match, "init.match")
        for name, parameter in module.named_parameters():
            if parameter.ndim >= 2 and (names is None or name in names):
                self.init.instance(parameter)

    def as_dict(self) -> dict[str, Any]:
        """The filling as YAML would have it, with every key."""
        match_key = {} if self.match is None else {"match": list(self.match)}
        return self.init.as_dict() | match_key


def with_inits(make: Make, fillings: Sequence[Filling]) -> Make:
    """Let `make` fill the weights too; a later filling overrides an earlier one."""

    def make_filled() -> nn.Module:
        module = make()
        for filling in fillings:
            filling.fill(module)
        return module

    return make_filled if fillings else make


def read_inits(fields: YamlNode, title: str, report: ErrorReport) -> tuple[list[Filling], YamlNode]:
    """Read a layer's `init:`, one or a list; return the fillings and the other fields."""
    value = fields.map().get("init")
    if value is None:
        return [], fields
    several = value.list() if isinstance(value.value, list) else [value]
    if not several:
        report.error("E104", f"{title}: init must name at least one", value.location)
    fillings = [_filling(item, f"{title}: init", report) for item in several]
    return [item for item in fillings if item is not None], without(fields, "init")


def _filling(node: YamlNode, title: str, report: ErrorReport) -> Filling | None:
    match = node.map().get("match")
    alone = replace(node, value={} if match is None else {"match": match})
    values = check(alone, schema_of(filling), f"{title}.", report)
    own = node if match is None else without(node, "match")
    choice = choose(title, own, INITS, report)
    return Filling(choice, values["match"]) if choice and values else None
