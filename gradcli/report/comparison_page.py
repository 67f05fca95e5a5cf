"""Runs side by side as one HTML page: verdicts, curves laid over each other, figures, configs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.dataclass import dataclass
from gradcli.report.charts import BETWEEN, LOGARITHMIC, ROWS, TITLES, WIDE
from gradcli.report.comparison import Comparison, RunPair, unequal_evaluation, verdict
from gradcli.report.document import document
from gradcli.report.fields import count, duration, figure, size
from gradcli.report.log_curves import OF_STEPS, LogCurves, log_curves
from gradcli.report.thinning import Curve, Points, extremes

HUES = 8  # colours of compare.css; a ninth run has the first one's, dashed
MOST_POINTS, ALL_POINTS = 1200, 24_000  # of a curve, of a page
MOST_REASONS = 20
NOISY = 30  # values from which on a curve is shown without its noise
NAMES = {
    "steps": ("steps", count),
    "parameters": ("parameters", count),
    "seconds": ("time", duration),
    "samples_per_second": ("samples per second", count),
    "memory_learning": ("memory, first steps", size),
    "memory_then": ("memory, then", size),
}
WHOLE = ("steps", "parameters", "samples_per_second", "memory_learning", "memory_then")


class Line(NamedTuple):
    """The curve of one run; `run_index` is that of the run."""

    run_index: int
    label: str
    points: Points

    @property
    def hue(self) -> str:
        """The name of its colour."""
        return f"run-{self.run_index % HUES}"

    @property
    def last(self) -> str:
        """The last value, which the legend shows until somebody points elsewhere."""
        return figure(self.points.values[-1])

    def drawing(self, look: str) -> dict[str, Any]:
        """What the script draws."""
        return {
            "label": self.label,
            "look": look,
            "hue": f"--{self.hue}",
            "dash": [7, 4] if self.run_index >= HUES else [],
            "x": self.points.steps,
            "y": [float(f"{value:.5g}") for value in self.points.values],
        }


@dataclass(frozen=True)
class Overlay:
    """One figure of several runs in one frame, with the numbers behind it."""

    title: str
    lines: Sequence[Line]
    look: str
    positive: bool
    logarithmic: bool
    rows: Sequence[Sequence[str]]

    @property
    def last_step(self) -> int:
        """The last step of the curves."""
        return max(line.points.steps[-1] for line in self.lines)

    @property
    def header(self) -> list[str]:
        """The header of the table of numbers."""
        return ["step", *(line.label for line in self.lines)]

    @property
    def summary(self) -> str:
        """The curves in words, for a screen reader."""
        sentences = (
            f"{line.label} from {figure(line.points.values[0])} to {line.last}"
            for line in self.lines
        )
        return f"{self.title} by step: {'; '.join(sentences)}"

    def drawing(self) -> dict[str, Any]:
        """What the script draws."""
        lines = [line.drawing(self.look) for line in self.lines]
        return {"log": self.logarithmic, "best": None, "series": lines}


def comparison_page(comparison: Comparison) -> str:
    """The page as HTML."""
    labels = [side.label for side in comparison.sides]
    overlays = _overlays(labels, [log_curves(side.run) for side in comparison.sides])
    facts = {
        "sides": comparison.sides,
        "pairs": [_words(pair) for pair in comparison.pairs],
        "charts": overlays,
        "figures": _figures(comparison),
    }
    drawing = {"live": False, "charts": [overlay.drawing() for overlay in overlays]}
    return document("compare.html.j2", facts, drawing, styles=["templates/compare.css"])


def _words(pair: RunPair) -> dict[str, Any]:
    """Describe a pair in words."""
    return {
        "label": pair.candidate.label,
        "mood": "good" if pair.same_bits else "warn",
        "verdict": verdict(pair),
        "evaluation": unequal_evaluation(pair),
        "reasons": pair.reasons[:MOST_REASONS],
        "more": max(0, len(pair.reasons) - MOST_REASONS),
        "unexplained": pair.same_bits is False and not pair.reasons,
        "config": pair.config,
        "notes": pair.notes,
    }


def _figures(comparison: Comparison) -> list[list[str]]:
    """One row per figure, one cell per run."""
    names = dict.fromkeys(name for side in comparison.sides for name in side.figures)
    rows = []
    for name in names:
        title, form = NAMES.get(name, (name, figure))
        values = [side.figures.get(name) for side in comparison.sides]
        if name in WHOLE:
            values = [None if value is None else int(value) for value in values]
        rows.append([title, *map(form, values)])
    return rows


def _overlays(labels: Sequence[str], runs: Sequence[LogCurves]) -> list[Overlay]:
    """Loss, figures of evaluations, then other figures of steps, where any run has them."""
    evaluations = dict.fromkeys(key for run in runs for key in run.evaluations)
    kinds = [("loss", "step"), *((key, "eval") for key in evaluations)]
    kinds += [(key, "step") for key in OF_STEPS if key != "loss"]
    most = max(100, min(MOST_POINTS, ALL_POINTS // max(1, len(kinds) * len(runs))))
    overlays = []
    for key, event in kinds:
        curves = [(run.steps if event == "step" else run.evaluations).get(key) for run in runs]
        overlays.append(_overlay(key, event, labels, curves, most))
    return [overlay for overlay in overlays if overlay is not None]


def _overlay(
    key: str, event: str, labels: Sequence[str], curves: Sequence[Curve | None], most: int
) -> Overlay | None:
    present = [(index, curve) for index, curve in enumerate(curves) if curve is not None]
    if not present:
        return None
    smooth = key != "lr" and event == "step" and any(curve.count >= NOISY for _, curve in present)
    lines = [
        Line(index, labels[index], curve.smooth() if smooth else curve.points(most))
        for index, curve in present
    ]
    values = [value for line in lines for value in line.points.values]
    positive = min(values) > 0
    title = TITLES.get(key, key)
    return Overlay(
        title=f"{title}, smoothed" if smooth else title,
        lines=lines,
        look="line" if event == "step" else "points",
        positive=positive,
        logarithmic=positive
        and max(values) > WIDE * min(values)
        and (key in LOGARITHMIC or key.endswith(".loss")),
        rows=_rows([curve for _, curve in present]),
    )


def _rows(curves: Sequence[Curve]) -> list[list[str]]:
    """Steps with the value of each run there, as logged; of long curves some."""
    by_step: dict[int, dict[int, float]] = {}
    for index, curve in enumerate(curves):
        few = extremes(curve.points(BETWEEN), ROWS)
        for step, value in zip(few.steps, few.values, strict=True):
            by_step.setdefault(step, {})[index] = value
    return [
        [count(step), *(figure(by_step[step].get(index, "")) for index in range(len(curves)))]
        for step in sorted(by_step)
    ]
