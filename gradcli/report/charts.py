"""The charts of a page: what a script draws, what stands beside it, and the numbers behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.dataclass import dataclass
from gradcli.report.fields import count, figure
from gradcli.report.log_curves import LogCurves
from gradcli.report.thinning import Curve, Points, extremes

MOST_POINTS = 2000  # of a curve
ALL_POINTS = 9000  # of a page, which stays small however many figures a run has
ROWS = 24  # of a table of numbers
BETWEEN = 10 * ROWS
WIDE = 20.0  # how far apart positive values lie where a logarithmic scale helps
TITLES = {
    "loss": "Loss",
    "lr": "Learning rate",
    "grad_norm": "Norm of all gradients",
    "samples_per_second": "Samples per second",
    "wait_data": "Share of time that waited for data",
}
LOGARITHMIC = ("loss", "grad_norm")


class ChartSeries(NamedTuple):
    """One curve of a chart; `look` is raw, line or points.

    `event` and `key` name the records of the log that go on with it.
    """

    label: str
    look: str
    points: Points
    event: str
    key: str

    @property
    def last(self) -> str:
        """The last value, which a legend shows until somebody points elsewhere."""
        return figure(self.points.values[-1])


@dataclass(frozen=True)
class Chart:
    """Curves over the steps in one frame, with the numbers behind them."""

    name: str
    title: str
    series: Sequence[ChartSeries]
    logarithmic: bool
    positive: bool
    best: int | None
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def last_step(self) -> int:
        """The last step of the curves."""
        return max(series.points.steps[-1] for series in self.series)

    @property
    def summary(self) -> str:
        """The curves in words, for a screen reader."""
        sentences = []
        for series in self.series:
            values = series.points.values
            least, most = figure(min(values)), figure(max(values))
            sentences.append(
                f"{series.label} from {figure(values[0])} to {series.last}, {least} to {most}"
            )
        return f"{self.title} by step: {'; '.join(sentences)}"

    def drawing(self) -> dict[str, Any]:
        """The data that the script draws."""
        return {
            "log": self.logarithmic,
            "best": self.best,
            "series": [
                {
                    "label": series.label,
                    "look": series.look,
                    "event": series.event,
                    "key": series.key,
                    "x": series.points.steps,
                    "y": [float(f"{value:.5g}") for value in series.points.values],
                }
                for series in self.series
            ],
        }


def charts(curves: LogCurves, best: int | None) -> list[Chart]:
    """Charts of the loss, the other figures of evaluations, then the other figures of steps."""
    number = max(1, len(curves.steps) + len(curves.evaluations))
    most = max(100, min(MOST_POINTS, ALL_POINTS // number))
    frames = [_loss(curves, most, best)]
    for key, curve in curves.evaluations.items():
        if key != "val.loss":
            series = ChartSeries(
                key.removeprefix("val."), "points", curve.points(most), "eval", key
            )
            frames.append(_chart(key, key, [series], best, [(key, curve)]))
    for key, curve in curves.steps.items():
        if key != "loss":
            frames.append(_of_steps(key, curve, most))
    return [frame for frame in frames if frame is not None]


def _loss(curves: LogCurves, most: int, best: int | None) -> Chart | None:
    train, val = curves.steps.get("loss"), curves.evaluations.get("val.loss")
    series: list[ChartSeries] = []
    columns: list[tuple[str, Curve]] = []
    if train is not None:
        series += _with_noise("train", train, most, "loss")
        columns.append(("train", train))
    if val is not None:
        series.append(ChartSeries("val", "points", val.points(most), "eval", "val.loss"))
        columns.append(("val", val))
    return _chart("loss", TITLES["loss"], series, best, columns) if series else None


def _of_steps(key: str, curve: Curve, most: int) -> Chart:
    if key == "lr":  # it has no noise, and few points show it whole
        series = [ChartSeries("lr", "line", curve.points(min(most, 400)), "step", key)]
    else:
        series = _with_noise(TITLES[key].partition(" ")[0].lower(), curve, most, key)
    return _chart(key, TITLES[key], series, None, [(key, curve)])


def _with_noise(label: str, curve: Curve, most: int, key: str) -> list[ChartSeries]:
    """A noisy curve, and its course where there is enough of it."""
    raw = ChartSeries(label, "raw", curve.points(most), "step", key)
    if curve.count < 30:
        return [raw._replace(look="line")]
    return [raw, ChartSeries(f"{label}, smoothed", "line", curve.smooth(), "", "")]


def _chart(
    name: str,
    title: str,
    series: list[ChartSeries],
    best: int | None,
    columns: list[tuple[str, Curve]],
) -> Chart:
    values = [value for line in series for value in line.points.values]
    positive = min(values) > 0
    wide = positive and max(values) > WIDE * min(values)
    return Chart(
        name=name,
        title=title,
        series=series,
        logarithmic=wide and (name in LOGARITHMIC or name.endswith(".loss")),
        positive=positive,
        best=best,
        header=["step", *(label for label, _ in columns)],
        rows=_rows([curve for _, curve in columns]),
    )


def _rows(columns: list[Curve]) -> list[list[str]]:
    """Steps with the value of each curve there; of long ones some, extremes among them."""
    by_step: dict[int, dict[int, float]] = {}
    for index, curve in enumerate(columns):
        few = extremes(curve.points(BETWEEN), ROWS)
        for step, value in zip(few.steps, few.values, strict=True):
            by_step.setdefault(step, {})[index] = value
    return [
        [
            count(step),
            *(figure(by_step[step].get(index, "")) for index in range(len(columns))),
        ]
        for step in sorted(by_step)
    ]
