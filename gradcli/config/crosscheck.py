"""What only shows when sections are seen together: lengths, figures, names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.config.node import ErrorReport, YamlNode, describe
from gradcli.config.planned import PlannedLayer
from gradcli.config.schedules import ScheduleSpec, steps_of
from gradcli.config.sections import NamedSection
from gradcli.errors import ConfigError, Location
from gradcli.registry import closest
from gradcli.train.job import Expectation, TrainSettings, steps_per_epoch, total_steps
from gradcli.train.metrics import direction_of
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import DataSpec
    from gradcli.train.metrics import Metric


def location_of(root: YamlNode, *path: str) -> Location:
    """The place of a key, or of the section where it is missing."""
    node, prefix = root.at(path[:-1])
    return node.keys.get(path[-1], node.location) if len(prefix) == len(path) - 1 else node.location


def lengths(
    root: YamlNode,
    settings: TrainSettings,
    layers: Sequence[PlannedLayer],
    samples: int,
    report: ErrorReport,
) -> int | None:
    """The steps of the whole run; errors for batches that cannot be."""
    location = location_of(root, "train", "batch")
    if settings.micro_batch is not None and settings.micro_batch > settings.batch:
        report.error(
            "E104",
            f"train.micro_batch {settings.micro_batch} is larger than train.batch {settings.batch}",
            location_of(root, "train", "micro_batch"),
        )
    try:
        steps_per_epoch(settings, samples)
        total = total_steps(settings, samples)
    except ConfigError as error:
        error.location = location
        report.errors.append(error)
        return None
    if total:
        _lone_sample(settings, layers, samples, location, report)
    return total


def _lone_sample(
    settings: TrainSettings,
    layers: Sequence[PlannedLayer],
    samples: int,
    location: Location,
    report: ErrorReport,
) -> None:
    """Batch normalisation has no variance over a single value."""
    rest = samples % settings.batch
    lone = settings.batch == 1 or (rest == 1 and not settings.drop_last)
    alone = [
        layer
        for layer in layers
        if layer.kind == "batch_norm" and math.prod(layer.input.shape[1:]) == 1
    ]
    if lone and alone:
        report.error(
            "E109",
            f"layer {alone[0].index}, {alone[0].title}: a batch of 1 sample has no variance; "
            f"batches of {settings.batch} from {quantity(samples, 'training sample')} leave one "
            "of 1",
            location,
            notes=("set train.drop_last to true", "or choose another train.batch"),
        )


def sampler_fits(root: YamlNode, facts: DataSpec, loss: NamedSection, report: ErrorReport) -> None:
    """Check that there are classes to draw from, and that the loss does not weigh them too."""
    location = location_of(root, "train", "sampler")
    if facts.classes is None or facts.target:
        report.error(
            "E109",
            "train.sampler: balanced draws each class equally often, and the targets here are no "
            "classes of samples",
            location,
            notes=("leave train.sampler out",),
        )
    elif loss.instance.weights is not None or loss.values.get("pos_weight", 1.0) != 1.0:
        message = f"train.sampler: balanced and the weights of loss '{loss.name}' both"
        report.warn("W115", f"{message} make rare classes count more", location, caret="keep one")


def schedule_fits(root: YamlNode, schedule: NamedSection, total: int, report: ErrorReport) -> None:
    """Check that the warm-up ends within the run and that milestones rise, in each part too."""
    if total:
        _plan_fits(root, "schedule", schedule.instance, total, report)


def _plan_fits(
    root: YamlNode, title: str, plan: ScheduleSpec, total: int, report: ErrorReport
) -> None:
    warm = steps_of(plan.warmup, total)
    whole = "the whole run" if title == "schedule" else "that part of the run"
    if warm > total:
        report.error(
            "E109",
            f"{title}.warmup takes {quantity(warm, 'step')}, {whole} has {total}",
            location_of(root, "schedule", "warmup" if title == "schedule" else "parts"),
        )
    marks = [steps_of(mark, total) for mark in plan.marks]
    location = location_of(root, "schedule", "at")
    if any(after <= before for before, after in pairwise(marks)):
        report.error("E109", f"{title}.at must rise, got steps {marks}", location)
        return
    for mark in marks:
        if mark >= total:
            report.warn(
                "W102", f"{title}.at {mark} is never reached: {whole} has {total}", location
            )
    ends = [min(mark, total) for mark in (0, *marks, total)]
    for number, (part, (begin, end)) in enumerate(zip(plan.parts, pairwise(ends), strict=False)):
        _plan_fits(root, f"{title}.parts.{number}", part, end - begin, report)


def metric_exists(
    name: str, metrics: Mapping[str, Metric], splits: Sequence[str], later: Sequence[str] = ()
) -> str:
    """Why `name` (`val.accuracy`) cannot be watched; empty if it can.

    `later` are splits that are measured only after the last step.
    """
    split, dot, metric = name.partition(".")
    names = ["loss", *metrics]
    if not dot and splits:
        return f"'{name}' names no split; write {' or '.join(_with_split(name, names, splits))}"
    if split in later:
        return (
            f"the split '{split}' is measured at the end only; "
            f"while training: {', '.join(splits) or 'none'}"
        )
    if split not in splits:
        return f"there is no split '{split}' to measure on; here: {', '.join(splits) or 'none'}"
    if metric not in names:
        near = closest(metric, names)
        hint = f"; did you mean '{split}.{near}'?" if near else ""
        return f"metric '{metric}' is not measured; here: {', '.join(names)}{hint}"
    if metric in metrics and metrics[metric].table:
        numbers = ["loss", *(key for key, item in metrics.items() if not item.table)]
        return (
            f"metric '{metric}' is {metrics[metric].table}, and this takes a single number; "
            f"here: {', '.join(numbers)}"
        )
    return ""


def _with_split(name: str, names: Sequence[str], splits: Sequence[str]) -> list[str]:
    """What a name without a dot may mean: 'val_loss' is val.loss, 'loss' the loss of each split."""
    own = [split for split in splits if name.startswith(split)]
    metric = closest(re.sub(rf"^(?:{'|'.join(splits)})[\W_]?", "", name), names)
    metrics = names if metric is None else [metric]
    return [f"{split}.{figure}" for split in own or splits for figure in metrics]


def _judges(name: str, metrics: Mapping[str, Metric]) -> str:
    """Why `name` cannot tell better from worse; empty if it can."""
    if direction_of(name, metrics) != "neither":
        return ""
    metric = name.partition(".")[2]
    ways = [key for key, item in metrics.items() if item.direction != "neither"]
    return (
        f"metric '{metric}' is better neither higher nor lower; choose one that is: "
        f"{', '.join(['loss', *ways])}"
    )


def watched(
    root: YamlNode,
    settings: TrainSettings,
    expect: Sequence[Expectation],
    metrics: Mapping[str, Metric],
    facts: DataSpec,
    plateau: str | None,
    report: ErrorReport,
) -> None:
    """Check that `best`, `early_stop`, a plateau and `expect` name figures of the run."""
    during: list[str] = [split for split in ("val",) if split in facts.sizes]
    after: list[str] = [split for split in ("val", "test") if split in facts.sizes]
    watches: list[tuple[tuple[str, ...], str | None, list[str]]] = [
        (("train", "best"), settings.best, during),
        (("schedule", "metric"), plateau, during),
    ]
    if settings.early_stop:
        watches.append((("train", "early_stop", "metric"), settings.early_stop.metric, during))
    for item in expect:
        watches.append((("expect", item.metric), item.metric, after))
    for path, name, splits in watches:
        later = [split for split in after if split not in splits]
        if not name:
            continue
        problem = metric_exists(name, metrics, splits, later)
        if not problem and path[0] != "expect":
            problem = _judges(name, metrics)
        if problem:
            report.error("E109", f"{'.'.join(path)}: {problem}", location_of(root, *path))


def parameters(layers: Sequence[PlannedLayer], location: Location, report: ErrorReport) -> None:
    """Something is to be trained."""
    if not any(layer.parameters for layer in layers):
        report.error(
            "E109", "model: no layer has parameters, so there is nothing to train", location
        )


def unused_vars(root: YamlNode, references: set[str], report: ErrorReport) -> None:
    """Warn of variables that nothing references."""
    section = root.map().get("vars")
    for name, item in (section.map() if section else {}).items():
        if f"vars.{name}" not in references:
            message = f"vars.{name} ({describe(item)}) is not used"
            report.warn("W104", message, section.keys[name] if section else None)
