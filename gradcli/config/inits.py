"""First values of a layer's weights by name: functions of nn.init, whose options are the keys."""

from __future__ import annotations

from typing import Any, Literal

from gradcli.config.layer import Make
from gradcli.config.merge import without
from gradcli.config.node import Node, Report
from gradcli.config.row import Row
from gradcli.config.sections import Chosen, choose
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


def with_init(make: Make, chosen: Chosen) -> Make:
    """Makes the layer and fills its weights: all parameters of two or more dimensions."""

    def make_filled() -> nn.Module:
        module = make()
        for parameter in module.parameters():
            if parameter.ndim >= 2:
                chosen.made(parameter)
        return module

    return make_filled


def chosen_init(fields: Node, title: str, report: Report) -> tuple[Chosen | None, Node]:
    """What a layer's `init:` names, and the layer's fields without it."""
    given = fields.map().get("init")
    if given is None:
        return None, fields
    return choose(f"{title}: init", given, INITS, report), without(fields, "init")
