"""Layers that are allowed beside each other, and probably not meant so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gradcli.config.node import ErrorReport
from gradcli.config.planned import PlannedLayer, chains
from gradcli.errors import Location

NORMS = {"batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm"}
DROPOUTS = {"dropout", "dropout1d", "dropout2d"}
# Layers that mix features, by where these stand: in the last dimension, or anywhere in a sample.
OF_ROWS = {"linear", "embed", "lstm", "gru", "rnn", "attention", "transformer"}
OF_IMAGES = {"conv", "conv_transpose", "conv1d", "conv_transpose1d"}


def lints(layers: Sequence[PlannedLayer], report: ErrorReport) -> None:
    """What is said of the order of layers, once of what is written once."""
    warner = _Warner(report)
    for chain in chains(layers):
        for before, after in pairwise(chain):
            _neighbours(before.leaf(-1), after.leaf(0), warner)
        _narrow(list(_straight(chain)), warner)


class _Warner:
    """Warns once of each place: turns of a `repeat` and uses of a block share theirs."""

    def __init__(self, report: ErrorReport) -> None:
        self.report = report
        self.before: set[tuple[str, Location]] = set()

    def warn(self, code: str, message: str, layer: PlannedLayer, cure: str) -> None:
        """At this layer, unless the same was said there."""
        if (code, layer.location) not in self.before:
            self.before.add((code, layer.location))
            self.report.warn(
                code, f"layer {layer.index}, {layer.title}{message}", layer.location, cure
            )


def _neighbours(last: PlannedLayer, first: PlannedLayer, warner: _Warner) -> None:
    """Check two layers, one directly behind the other."""
    follower = f"layer {first.index}, {first.title}"
    if first.kind == "batch_norm" and last.fields.get("bias") and last.kind not in NORMS:
        cure = "bias: false"
        warner.warn("W103", ": its bias is removed again by the batch_norm", last, cure)
    if first.kind in NORMS and _ends_in_norm(last):
        where = f"layer {last.index}, {last.title}"
        message = f", normalises what {where}, has just normalised"
        warner.warn("W111", message, first, "leave one of the two out")
    if first.kind == "batch_norm" and last.kind in DROPOUTS and last.fields.get("p"):
        message = (
            f", stands directly before {follower}, which learns the variance of values with zeros "
            "among them; in evaluation there are none"
        )
        warner.warn("W112", message, last, "put it behind the batch_norm")


def _ends_in_norm(layer: PlannedLayer) -> bool:
    return layer.kind in NORMS or (
        layer.kind == "transformer" and layer.fields.get("norm") == "post"
    )


def _straight(chain: Sequence[PlannedLayer]) -> Iterator[PlannedLayer]:
    """The layers one behind the other, those of blocks among them; a sum or join is one."""
    for layer in chain:
        if layer.kind in ("block", "repeat"):
            yield from _straight(layer.children)
        else:
            yield layer


def _narrow(line: Sequence[PlannedLayer], warner: _Warner) -> None:
    """Warn of a layer that leaves one number, which a later layer widens again."""
    source: PlannedLayer | None = None  # the latest layer that made a width of 1
    for layer in line:
        mixes = any(inner.kind in OF_ROWS | OF_IMAGES for inner in layer.flat())
        if mixes and source is not None and _is_narrow(layer.kind, layer.input.shape):
            message = (
                f", leaves a width of 1: all that layer {layer.index}, {layer.title}, sees is one "
                "number" + (" a step" if len(source.output.shape) > 1 else "")
            )
            warner.warn("W113", message, source, "make it wider")
        if mixes:
            source = layer if _is_narrow(layer.kind, layer.output.shape) else None


def _is_narrow(kind: str, shape: tuple[int, ...]) -> bool:
    """Whether so little goes through: one number, or for layers of rows one in each of them."""
    return math.prod(shape) == 1 or (kind in OF_ROWS and shape[-1:] == (1,))
