"""Who is told how far long work on data has come: nobody, until cli/output.py says who."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

# (what is done, how much of it, how much there is or None, the unit)
Watcher = Callable[[str, int, int | None, str], None]
_PAUSE = 0.1  # seconds between two calls


def _nobody(what: str, done: int, total: int | None, unit: str) -> None:
    """Tell nobody."""


def _silent(text: str) -> None:
    """Tell nobody."""


watcher: Watcher = _nobody  # told at the beginning, now and then, and with done == total at the end
teller: Callable[[str], None] = _silent  # of one line that a user must know


class Progress:
    """Work of `total` units; its end is told as well, however it comes.

    Args:
        what: what is done, such as "preparing train.csv".
        total: None where it is not known.
    """

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self._told = time.monotonic()
        watcher(what, 0, total, unit)

    def advance(self, count: int) -> None:
        """So many more units are done."""
        self.done += count
        now = time.monotonic()
        if now - self._told >= _PAUSE and self.done != self.total:
            self._told = now
            watcher(self.what, self.done, self.total, self.unit)

    def close(self) -> None:
        """The work has ended."""
        watcher(self.what, self.done, self.done, self.unit)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
