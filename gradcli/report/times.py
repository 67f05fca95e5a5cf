"""The time of each layer in a training step, as `bench CONFIG` measures it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.report.fields import figure, text
from gradcli.report.run_files import number


class LayerTime(NamedTuple):
    """A layer, or what else a step does, with its part of the time."""

    name: str
    forward: str
    backward: str
    gflops: str
    ceiling: str
    share: float


def layer_times(layers: Sequence[Mapping[str, Any]]) -> list[LayerTime]:
    """The rows of `bench` for a page."""
    both = [
        (number(layer.get("forward_ms")) or 0.0) + (number(layer.get("backward_ms")) or 0.0)
        for layer in layers
    ]
    total = sum(both) or 1.0
    return [
        LayerTime(
            text(layer.get("name")),
            _cell(layer.get("forward_ms")),
            _cell(layer.get("backward_ms")),
            _cell(layer.get("gflops"), "{:.0f}"),
            _cell(layer.get("percent"), "{:.0f} %"),
            time / total,
        )
        for layer, time in zip(layers, both, strict=True)
    ]


def _cell(value: object, form: str = "") -> str:
    finite = number(value)
    if finite is None:
        return ""
    return form.format(finite) if form else figure(finite)
