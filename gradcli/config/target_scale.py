"""`data.target_scale` beside the loss, the model's end and the figures that are watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradcli.config.crosscheck import location_of
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.planned import PlannedLayer
from gradcli.config.sections import NamedSection
from gradcli.data.targets import ScaledTargets, TargetScale
from gradcli.train.job import Expectation, TrainSettings

if TYPE_CHECKING:
    from gradcli.data import DataSpec, Source

KEY = ("data", "target_scale")
# Layers whose outputs are bounded on a side or both: targets must stay where the outputs can be.
BOUNDED = frozenset(
    {
        *("relu", "relu6", "relusquared", "elu", "selu", "celu", "gelu", "silu", "mish"),
        *("softplus", "softsign", "hardswish", "hardsigmoid", "hardtanh", "softcap", "tanh"),
        *("sigmoid", "logsigmoid", "softmax", "log_softmax", "softmin"),
    }
)
RESHAPING = frozenset({"flatten", "reshape", "dropout", "identity"})


def with_scale(
    root: YamlNode,
    source: Source,
    facts: DataSpec,
    loss: NamedSection,
    layers: Sequence[PlannedLayer],
    report: ErrorReport,
) -> Any:
    """Set the `target_scale` of the source; data without that key stays as it is."""
    if not isinstance(source, ScaledTargets):
        return source
    obstacle = _obstacle(source, facts, loss)
    end = _end(layers)
    bounded = end is not None and end.kind in BOUNDED
    if source.target_scale == "standard":
        if obstacle:
            report.error("E109", f"data.target_scale: {obstacle}", location_of(root, *KEY))
        elif bounded and end is not None:
            report.warn(
                "W106",
                f"layer {end.index}, {end.title}, bounds the outputs, and scaled targets lie on "
                "both sides of 0",
                location_of(root, *KEY),
                caret="use none",
            )
        return source
    if source.target_scale is None and source.regression(facts):
        if obstacle or bounded or not loss.instance.distance:
            return replace(source, target_scale="none")
        _threshold_lint(root, loss, report)
        return replace(source, target_scale="standard")
    return source


def _obstacle(source: ScaledTargets, facts: DataSpec, loss: NamedSection) -> str:
    """Why the targets are not scaled; empty if they can be."""
    if not source.regression(facts):
        return "only targets that are values, one or a row of them a sample, are scaled"
    if loss.instance.distance is False:
        return f"loss '{loss.name}' needs the targets as they are; use none"
    return ""


def _end(layers: Sequence[PlannedLayer]) -> PlannedLayer | None:
    """The last layer that does more than reshape."""
    leaves = (layer.leaf(-1) for layer in reversed(layers))
    return next((leaf for leaf in leaves if leaf.kind not in RESHAPING), None)


def _threshold_lint(root: YamlNode, loss: NamedSection, report: ErrorReport) -> None:
    """Warn of a threshold of the loss, which applies to the scaled targets."""
    section = root.map()["loss"]
    key = next((key for key in ("delta", "beta") if key in section.map()), None)
    if key is not None:
        report.warn(
            "W106",
            f"loss.{key} counts in deviations of the target: data.target_scale is standard",
            section.keys[key],
            caret="write data.target_scale to choose",
        )


def figures_lint(
    root: YamlNode,
    source: object,
    train: TrainSettings,
    expect: Sequence[Expectation],
    report: ErrorReport,
) -> None:
    """Warn of a watched loss that is not in the units of the target."""
    if getattr(source, "target_scale", None) != "standard":
        return
    stop = train.early_stop
    watched = [
        (("train", "best"), train.best),
        (("train", "early_stop", "metric"), stop.metric if stop else None),
        *((("expect", item.metric), item.metric) for item in expect),
    ]
    for path, name in watched:
        if name is not None and name.endswith(".loss"):
            report.warn(
                "W106",
                f"{'.'.join(path) if path[0] == 'train' else 'expect'}: {name} is of the scaled "
                "targets (data.target_scale: standard), not in the target's units",
                location_of(root, *path),
                caret="mae and rmse are",
            )


def scale_of(source: object, facts: DataSpec) -> TargetScale | None:
    """The scale of the targets, fitted on a training split; None if they are not scaled.

    Before the data is loaded, 0 and 1 stand for the unknown numbers.
    """
    if getattr(source, "target_scale", None) != "standard":
        return None
    stats = getattr(facts, "targets", None)
    if stats is not None:
        return TargetScale(stats.mean, stats.std)
    columns = facts.target[-1] if facts.target else 1
    return TargetScale((0.0,) * columns, (1.0,) * columns)
