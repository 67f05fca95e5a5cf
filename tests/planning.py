"""Layers planned as `gradcli check` plans them, from Python's values in place of a file."""

from __future__ import annotations

from typing import Any

from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.planned import PlannedLayer
from gradcli.config.planner import Planner
from gradcli.config.tensor_spec import TensorSpec
from gradcli.errors import ErrorGroup, Location

PLACE = Location("layers")


def node(value: Any) -> YamlNode:
    """A value as the reader of YAML hands it on."""
    if isinstance(value, dict):
        inside = {key: node(item) for key, item in value.items()}
        return YamlNode(inside, PLACE, dict.fromkeys(inside, PLACE))
    if isinstance(value, (list, tuple)):
        return YamlNode([node(item) for item in value], PLACE)
    return YamlNode(value, PLACE)


def planned(signal: TensorSpec, *layers: Any) -> list[PlannedLayer]:
    """The layers for what goes into the first.

    Raises:
        ErrorGroup: what `gradcli check` says of them.
    """
    report = ErrorReport()
    plan, _ = Planner(report).plan(node(layers), signal)
    if report.errors:
        raise ErrorGroup(report.errors)
    return plan
