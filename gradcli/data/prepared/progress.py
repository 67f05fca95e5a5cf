"""How far long work on data has come; data code never prints."""

from __future__ import annotations

import time
from types import TracebackType

from gradcli import watching

_PAUSE = 0.1  # seconds between two calls


def watcher(what: str, current: int, total: int | None, unit: str) -> None:
    """Report work, such as "preparing train.csv", and how much of it is done.

    The first call starts it, one with current == total ends it, one with `GIVEN_UP` ends it badly.
    """
    watching.watcher(what, current, total, unit)


def teller(text: str) -> None:
    """Print a line that a user must see."""
    watching.teller(text)


class Progress:
    """Work of `total` units (None: unknown); nothing is reported before the first unit.

    As a context manager it is closed at the end.
    """

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.current = 0
        self._latest = 0.0

    def advance(self, count: int) -> None:
        """Count more units as done."""
        if not self._latest:
            watcher(self.what, 0, self.total, self.unit)
            self._latest = time.monotonic()
        self.current += count
        now = time.monotonic()
        if now - self._latest >= _PAUSE and self.current != self.total:
            self._latest = now
            watcher(self.what, self.current, self.total, self.unit)

    def close(self, *, given_up: bool = False) -> None:
        """End the work; `given_up` says that it failed."""
        if self._latest:
            current = watching.GIVEN_UP if given_up else self.current
            watcher(self.what, current, self.total if given_up else self.current, self.unit)
        self._latest, self.current = 0.0, 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(given_up=kind is not None)
