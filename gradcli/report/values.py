"""How a model that predicts values did: prediction against truth, and what lies between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.fields import figure, items, text
from gradcli.report.run_files import floats
from gradcli.train.safetensors_file import RawTensor

WIDTH, HEIGHT, LEFT_MARGIN, BOTTOM_MARGIN, EDGE = 420, 280, 62, 30, 10
MOST = 1200  # points of a picture
MOST_VALUES = 6  # pictures
BARS = 31


class Frame:
    """A picture's frame: where values of its two axes lie."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def across(self, value: float) -> float:
        """The x position of a value."""
        least, most = self.x
        return LEFT_MARGIN + (WIDTH - LEFT_MARGIN - EDGE) * (value - least) / (most - least)

    def down(self, value: float) -> float:
        """The y position of a value."""
        least, most = self.y
        floor = HEIGHT - BOTTOM_MARGIN
        return floor - (floor - EDGE) * (value - least) / (most - least)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Ticks of the x axis."""
        return [(round(self.across(tick), 1), tick_text(tick)) for tick in ticks(*self.x, 5)]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Ticks of the y axis."""
        return [(round(self.down(tick), 1), tick_text(tick)) for tick in ticks(*self.y, 5)]


@dataclass(frozen=True)
class Scatter:
    """One predicted value: points as a path, the line of right ones, and bars of residuals."""

    name: str
    frame: Frame
    path: str
    line: tuple[float, float, float, float]
    bars_frame: Frame
    bars: Sequence[tuple[float, float, float, float]]
    zero: float | None
    summary: Sequence[tuple[str, str]]


def scatters(evaluation: Mapping[str, Any], tensors: Mapping[str, RawTensor]) -> list[Scatter]:
    """A scatter plot for each of the first predicted values."""
    outputs, targets = floats(tensors, "outputs"), floats(tensors, "targets")
    names = items(evaluation.get("outputs"))
    width = min(len(outputs[0]), len(targets[0]), MOST_VALUES) if outputs and targets else 0
    plots = []
    for at in range(width):
        pairs = [
            (truth, guess)
            for guess, truth in (
                (output[at], target[at]) for output, target in zip(outputs, targets, strict=False)
            )
            if truth is not None and guess is not None
        ]
        if len(pairs) > 1:
            name = text(names[at])[:80] if at < len(names) else f"value {at}"
            plots.append(_scatter(name, pairs))
    return plots


def _scatter(name: str, pairs: Sequence[tuple[float, float]]) -> Scatter:
    off = [guess - truth for truth, guess in pairs]
    both = [value for pair in pairs for value in pair]
    span = _with_room(min(both), max(both))
    frame = Frame(span, span)
    every = -(-len(pairs) // MOST)
    far = sorted(range(len(pairs)), key=lambda at: -abs(off[at]))[:60]
    indices = sorted({*range(0, len(pairs), every), *far})
    path = "".join(
        f"M{frame.across(pairs[at][0]):.1f} {frame.down(pairs[at][1]):.1f}h0" for at in indices
    )
    ends = (frame.across(span[0]), frame.down(span[0]), frame.across(span[1]), frame.down(span[1]))
    bars_frame, bars = _bars(off)
    zero = bars_frame.across(0.0) if bars_frame.x[0] <= 0 <= bars_frame.x[1] else None
    return Scatter(name, frame, path, ends, bars_frame, bars, zero, _summary(pairs, off))


def _summary(pairs: Sequence[tuple[float, float]], off: Sequence[float]) -> list[tuple[str, str]]:
    size = len(pairs)
    mean = math.fsum(truth for truth, _ in pairs) / size
    spread = math.fsum((truth - mean) ** 2 for truth, _ in pairs)
    square = math.fsum(error * error for error in off)
    figures = [
        ("samples", f"{size:,}"),
        ("mean error", figure(math.fsum(off) / size)),
        ("mean absolute error", figure(math.fsum(map(abs, off)) / size)),
        ("root mean square error", figure(math.sqrt(square / size))),
    ]
    return [*figures, ("R²", figure(1 - square / spread))] if spread else figures


def _bars(off: Sequence[float]) -> tuple[Frame, list[tuple[float, float, float, float]]]:
    """Bars of the histogram of errors: left, top, width and height."""
    least, most = _with_room(min(off), max(off), room=0.0)
    counts = [0] * BARS
    for error in off:
        counts[min(BARS - 1, int(BARS * (error - least) / (most - least)))] += 1
    frame = Frame((least, most), (0.0, 1.08 * max(counts)))
    width = (WIDTH - LEFT_MARGIN - EDGE) / BARS
    floor = frame.down(0.0)
    bars = [
        (LEFT_MARGIN + width * at + 0.5, frame.down(count), width - 1, floor - frame.down(count))
        for at, count in enumerate(counts)
        if count
    ]
    return frame, [(round(a, 1), round(b, 1), round(c, 1), round(d, 1)) for a, b, c, d in bars]


def _with_room(least: float, most: float, room: float = 0.04) -> tuple[float, float]:
    """A stretch around these two, never empty."""
    if most - least < 1e-12 * max(abs(most), abs(least), 1e-12):
        return least - (abs(least) or 1.0) * 0.1, most + (abs(most) or 1.0) * 0.1
    return least - room * (most - least), most + room * (most - least)


def ticks(least: float, most: float, about: int) -> list[float]:
    """About this many round numbers between two."""
    raw = (most - least) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(least / step), math.floor(most / step)
    return [number * step for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A round number as an axis has it."""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{round(value, 9):,.6g}" if abs(value) < 1e5 else f"{value:,.0f}"
