"""How far long work on data has come; data code never prints."""

from __future__ import annotations

import time
from types import TracebackType

from gradcli import watching

_PAUSE = 0.1  # seconds between two calls


def watcher(what: str, done: int, total: int | None, unit: str) -> None:
    """Tell what is done, such as "preparing train.csv", and how much of it.

    The first call is the beginning, one with done == total the end, one of `GIVEN_UP` a bad end.
    """
    watching.watcher(what, done, total, unit)


def teller(text: str) -> None:
    """Tell one line that a user must know."""
    watching.teller(text)


class Progress:
    """Work of `total` units, None where that is not known; nothing is told before the first one.

    As a context manager it is closed at the end.
    """

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self._latest = 0.0

    def advance(self, count: int) -> None:
        """So many more units are done."""
        if not self._latest:
            watcher(self.what, 0, self.total, self.unit)
            self._latest = time.monotonic()
        self.done += count
        now = time.monotonic()
        if now - self._latest >= _PAUSE and self.done != self.total:
            self._latest = now
            watcher(self.what, self.done, self.total, self.unit)

    def close(self, *, given_up: bool = False) -> None:
        """The work has ended, well or not."""
        if self._latest:
            done = watching.GIVEN_UP if given_up else self.done
            watcher(self.what, done, self.total if given_up else self.done, self.unit)
        self._latest, self.done = 0.0, 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(given_up=kind is not None)
