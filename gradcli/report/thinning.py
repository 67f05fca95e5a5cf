"""Curves of any length as so many points that all extremes can still be seen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

BUFFER = 1 << 17
CAPACITY = 1 << 12
GROUPS = 1024  # of which the smooth curve has the means


class Points(NamedTuple):
    """A curve: steps that rise, and the value at each."""

    steps: list[int]
    values: list[float]


class Curve:
    """Values by step; of many a part is kept, with the least and the greatest of each stretch.

    Attributes:
        count: how many values came.
        last: the last of them, with its step.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: tuple[int, float] | None = None
        self._points = Points([], [])
        self._means = _Means()

    def extend(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """More values, behind those so far."""
        if not steps:
            return
        self.count += len(steps)
        self.last = steps[-1], values[-1]
        self._means.extend(steps, values)
        self._points.steps.extend(steps)
        self._points.values.extend(values)
        if len(self._points.steps) > BUFFER:
            self._points = extremes(self._points, CAPACITY)

    def points(self, most: int) -> Points:
        """At most so many points, extremes among them."""
        return extremes(self._points, most)

    def smooth(self) -> Points:
        """The course without its noise: a moving average over a thirtieth of the curve."""
        steps, means = self._means.points()
        weight = 2 / (1 + max(3.0, len(means) / 30))
        total = share = 0.0
        smoothed = []
        for mean in means:
            total += weight * (mean - total)
            share += weight * (1 - share)
            smoothed.append(total / share)
        return extremes(Points(steps, smoothed), 600)


def extremes(points: Points, most: int) -> Points:
    """First, last, and of each stretch the least and the greatest value, in their order.

    Stretches have as many steps, not as many points: what was thinned before is not thinned more.
    """
    steps, values = points
    if len(steps) <= most:
        return points
    stretches = max(1, (most - 2) // 2)
    first, span = steps[0], steps[-1] - steps[0] + 1
    picks, begin = {0, len(steps) - 1}, 0
    for number in range(1, stretches + 1):
        end = bisect_left(steps, first + span * number // stretches, begin)
        part = values[begin:end]
        if part:
            picks |= {begin + part.index(min(part)), begin + part.index(max(part))}
        begin = end
    indices = sorted(picks)
    return Points([steps[at] for at in indices], [values[at] for at in indices])


class _Means:
    """The mean of each group of neighbours; groups grow where they become too many."""

    def __init__(self) -> None:
        self._size = 1
        self._groups: list[tuple[int, float]] = []  # last step and mean
        self._steps: list[int] = []  # of the group to come
        self._values: list[float] = []

    def extend(self, steps: Sequence[int], values: Sequence[float]) -> None:
        self._steps.extend(steps)
        self._values.extend(values)
        at, size = 0, self._size
        while at + size <= len(self._steps):
            mean = sum(self._values[at : at + size]) / size
            self._groups.append((self._steps[at + size - 1], mean))
            at += size
            if len(self._groups) >= 2 * GROUPS:
                size = self._merge()
        del self._steps[:at], self._values[:at]

    def _merge(self) -> int:
        pairs = zip(self._groups[::2], self._groups[1::2], strict=True)
        self._groups = [(later[0], (earlier[1] + later[1]) / 2) for earlier, later in pairs]
        self._size *= 2
        return self._size

    def points(self) -> tuple[list[int], list[float]]:
        return [step for step, _ in self._groups], [mean for _, mean in self._groups]
