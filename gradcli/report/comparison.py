"""Runs beside each other: the first is the base of all comparisons."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.comparison_config import ConfigDifference, RunConfig, differences
from gradcli.report.comparison_log import Losses, Unequal, losses
from gradcli.report.comparison_reasons import Reason, reasons, same_data
from gradcli.report.log_lines import LogLines
from gradcli.report.run_files import RunFiles, number
from gradcli.train.directory import LOG
from gradcli.train.run_list import size_of, status_of
from gradcli.wording import quantity

TAIL = 1 << 20  # bytes of a log whose speeds are looked at


@dataclass(frozen=True)
class Side:
    """A run in a comparison.

    Attributes:
        label: what it is called there: as short as tells the runs apart.
        figures: the numbers that it has, by names such as `val.loss`, `seconds`, `memory`.
    """

    run: RunFiles
    label: str
    status: str
    steps: int | None
    weights_sha256: str
    figures: Mapping[str, float]
    settings: RunConfig
    bytes: int


@dataclass(frozen=True)
class RunPair:
    """A run compared with the base.

    Attributes:
        same_weights: None where it is not known.
        reasons: why they may differ; empty where they do not.
        notes: what could not be compared.
    """

    base: Side
    candidate: Side
    config: Sequence[ConfigDifference]
    losses: Losses
    same_weights: bool | None
    reasons: Sequence[Reason]
    notes: Sequence[str]

    @property
    def same_bits(self) -> bool | None:
        """Whether weights and losses are equal; None where that is not known."""
        if self.losses.unequal is not None:
            return False
        return self.same_weights


@dataclass(frozen=True)
class Comparison:
    """All runs, the base first, and each pair."""

    sides: Sequence[Side]
    pairs: Sequence[RunPair]

    @property
    def same_bits(self) -> bool:
        """Whether all runs have the bits of the base, for certain."""
        return all(pair.same_bits for pair in self.pairs)


def compare(paths: Sequence[Path]) -> Comparison:
    """Compare two or more runs, by their paths.

    Raises:
        RunError: one is no run, or cannot be read.
    """
    runs = [RunFiles(path) for path in paths]
    sides = [_side(run, label) for run, label in zip(runs, labels(paths), strict=True)]
    return Comparison(sides, [_pair(sides[0], candidate) for candidate in sides[1:]])


def labels(paths: Sequence[Path]) -> list[str]:
    """What runs are called: their name where that is enough, else more of the path."""
    names = [path.absolute().parent.name for path in paths]
    folders = [path.name for path in paths]
    both = [f"{name}/{folder}" for name, folder in zip(names, folders, strict=True)]
    for texts in (names, folders if len(set(names)) == 1 else both, both):
        if len(set(texts)) == len(texts):
            return texts
    return [str(path) for path in paths]


def _side(run: RunFiles, label: str) -> Side:
    steps = run.status.get("step")
    sha256 = run.status.get("weights_sha256")
    return Side(
        run,
        label,
        status_of(run.path, run.status),
        steps if type(steps) is int else None,
        sha256 if isinstance(sha256, str) else "",
        _figures(run),
        RunConfig(run),
        size_of(run.path),
    )


def _figures(run: RunFiles) -> dict[str, float]:
    """Every number that runs are compared by."""
    metrics = run.status.get("metrics")
    memory = _inside(_inside(run.plan, "memory"), "train")
    values = {
        **(metrics if isinstance(metrics, dict) else {}),
        "steps": run.status.get("step"),
        "seconds": run.status.get("seconds"),
        "samples_per_second": _speed(run),
        "parameters": run.plan.get("total"),
        "memory_learning": memory.get("learning"),
        "memory_then": memory.get("then"),
    }
    numbers = {str(name)[:100]: number(value) for name, value in values.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def _inside(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _speed(run: RunFiles) -> float | None:
    """The median speed of the last steps; the end of the log is enough, for logs may be long."""
    log = run.path / LOG
    speeds = []
    with contextlib.suppress(OSError):  # that is said where the losses are compared
        for record in LogLines(log, max(0, log.stat().st_size - TAIL)):
            speed = number(record.get("samples_per_second"))
            if speed is not None and record.get("event") == "step":
                speeds.append(speed)
    return median(speeds) if speeds else None


def _pair(base: Side, candidate: Side) -> RunPair:
    config = differences(base.settings, candidate.settings, same_data(base.run, candidate.run))
    common = losses(base.run, candidate.run)
    same_weights: bool | None = None
    if base.weights_sha256 and candidate.weights_sha256:
        same_weights = base.weights_sha256 == candidate.weights_sha256
    differ = same_weights is False or common.unequal is not None
    causes = reasons(base.run, candidate.run, config) if differ else []
    if differ and base.steps != candidate.steps:
        causes = [*causes, Reason("steps", "", str(base.steps), str(candidate.steps))]
    return RunPair(
        base, candidate, config, common, same_weights, causes, _notes(base, candidate, common)
    )


def _notes(base: Side, candidate: Side, common: Losses) -> list[str]:
    """What cannot be compared, and why."""
    notes = []
    for side in (base, candidate):
        if side.settings.problem:
            notes.append(f"the config of {side.label} cannot be read: {side.settings.problem}")
        notes += [f"{side.label}: {problem}" for problem in side.run.problems]
    if base.run.path.resolve() == candidate.run.path.resolve():
        notes.append(f"{base.label} and {candidate.label} are the same folder")
    if not common.steps:
        notes.append("the logs have no step in common, so that no losses were compared")
    unknown = [side.label for side in (base, candidate) if not side.weights_sha256]
    if unknown:
        runs = " and ".join(unknown)
        notes.append(
            f"whether the weights are equal is not known: {runs} "
            f"{'has' if len(unknown) == 1 else 'have'} no weights_sha256 in status.json"
        )
    return notes


def verdict(pair: RunPair) -> str:
    """Say in one sentence whether two runs have the same bits and where they first differ."""
    common = pair.losses
    count = quantity(common.steps, "loss in common", "losses in common", form=",")
    if pair.same_bits:
        both = f"{count} and the weights" if common.steps else "the weights"
        return f"same bits: {both} are equal (sha256 {pair.base.weights_sha256[:12]})"
    if common.unequal is not None:
        before = f"; equal up to step {common.same_until}" if common.same_until is not None else ""
        return f"not the same bits: the loss differs first at {_sides(common.unequal)}{before}"
    if pair.same_bits is None:
        return f"{count} are equal" if common.steps else "nothing is known of equal bits"
    if pair.base.steps != pair.candidate.steps:
        return (
            f"other weights, of step {pair.base.steps} and of step {pair.candidate.steps}; "
            f"{count} are equal"
        )
    return f"not the same bits: the weights differ, though {count} are equal"


def _sides(difference: Unequal) -> str:
    return f"step {difference.step}, {difference.base} against {difference.other}"


def unequal_evaluation(pair: RunPair) -> str:
    """Say where an evaluation first differs; empty if none does."""
    difference = pair.losses.unequal_evaluation
    if difference is None:
        return ""
    return f"evaluations differ first in {difference.key} at {_sides(difference)}"
