"""The shapes of rates over time, as plain functions: schedules and lr_scheduler draw on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Literal

from gradcli.dataclass import dataclass

Measure = Literal["rel", "abs"]
RELATIVE: Measure = "rel"
Anneal = Literal["cos", "linear"]


def power(base: float, exponent: float) -> float:
    """Base to the exponent; what is too large for a double is infinite."""
    try:
        return float(float(base) ** exponent)
    except OverflowError:
        return math.inf


def half_cosine(start: float, end: float, progress: float) -> float:
    """From start to end along half a cosine, as `progress` goes from 0 to 1."""
    return end + (start - end) / 2 * (1 + math.cos(math.pi * progress))


def straight(start: float, end: float, progress: float) -> float:
    """From start to end in a straight line, as `progress` goes from 0 to 1."""
    return start + (end - start) * progress


Curve = Callable[[float, float, float], float]
CURVES: dict[str, Curve] = {"cos": half_cosine, "linear": straight}


def in_cycle(time: float, first: int, stretch: int) -> tuple[float, int]:
    """How far into its cycle a time is, and how long that is: each `stretch` times the last."""
    if stretch == 1:
        return time % first, first
    length = first
    while time >= length:
        time -= length
        length *= stretch
    return time, length


@dataclass(frozen=True)
class Cycle:
    """One cycle in `total` steps (Smith and Topin 2018).

    Up to the peak at rise * total - 1 steps, with `three` phases down again in as many, and then to
    the end at total - 1.
    """

    total: int
    rise: float
    three: bool
    curve: Anneal

    def at(self, step: int, start: float, peak: float, end: float) -> float:
        """Where a value is at a step that goes from start to peak, perhaps to start, and to end."""
        rise = self.rise * self.total
        turns = [(rise - 1, peak), (2 * rise - 2, start), (self.total - 1, end)]
        if not self.three:
            del turns[1]
        begin, level = 0.0, start
        while len(turns) > 1 and step > turns[0][0]:
            begin, level = turns.pop(0)
        until, goal = turns[0]
        share = (step - begin) / (until - begin) if until != begin else 1.0
        return CURVES[self.curve](level, goal, share)


@dataclass
class Patience:
    """Counts how long a figure has not become better, with a rest after each time it ran out.

    Better by more than `threshold`: a share of the best figure so far ("rel"), or a distance
    ("abs"). `best`, `bad`, `resting` and `falls`, how often it ran out, are what a resumed run must
    know.
    """

    falling: bool
    patience: int
    threshold: float
    kind: str
    cooldown: int
    best: float = field(init=False)
    bad: int = field(init=False, default=0)
    resting: int = field(init=False, default=0)
    falls: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.best = math.inf if self.falling else -math.inf

    def better(self, figure: float) -> bool:
        """Whether a figure beats the best so far; NaN never does."""
        margin = -self.threshold if self.falling else self.threshold
        bar = self.best * (1 + margin) if self.kind == RELATIVE else self.best + margin
        return figure < bar if self.falling else figure > bar

    def ran_out(self, figure: float) -> bool:
        """Enter a figure; True when it is one too many without anything better."""
        if self.better(figure):
            self.best, self.bad = figure, 0
        else:
            self.bad += 1
        if self.resting > 0:
            self.resting -= 1
            self.bad = 0
        if self.bad <= self.patience:
            return False
        self.bad, self.resting = 0, self.cooldown
        self.falls += 1
        return True
