"""What a competitor offers: steps to run, and the losses of its first ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol


class Runner(Protocol):
    """One competitor's training of one workload; `unit` steps are run in one call."""

    unit: int

    def remark(self) -> str:
        """What a reader of the figures must know, such as why a step is not captured."""
        ...

    def losses(self, steps: int) -> list[float]:
        """Run at least `steps` steps; the losses of the first `steps` of them."""
        ...

    def run(self, steps: int) -> None:
        """Run `steps` steps, a multiple of `unit`; they are finished on return."""
        ...


class Loop:
    """`call` on one item after the other; `finish` waits for the last result.

    An item is what one call takes: a batch, or the batches of a whole scan.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        *,
        unit: int = 1,
        values: Callable[[Any], list[float]],
        finish: Callable[[Any], object] = lambda result: None,
        remark: Callable[[], str] = str,
    ) -> None:
        self.unit = unit
        self._remark = remark
        self._call = call
        self._items: Iterator[tuple[Any, ...]] = itertools.cycle(items)
        self._values = values
        self._finish = finish

    def remark(self) -> str:
        """What the library says of it."""
        return self._remark()

    def losses(self, steps: int) -> list[float]:
        """The first losses, read one by one."""
        series: list[float] = []
        for item in itertools.islice(self._items, math.ceil(steps / self.unit)):
            series += self._values(self._call(*item))
        return series[:steps]

    def run(self, steps: int) -> None:
        """The timed loop: nothing in it but taking a batch and the step."""
        call, result = self._call, None
        for item in itertools.islice(self._items, steps // self.unit):
            result = call(*item)
        self._finish(result)
