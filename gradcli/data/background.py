"""Work that goes on beside the caller's: unpacking and hashing let other threads run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A call in a thread of its own, which does not outlive the process."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # it belongs to the one who asks for the result
            self._error = error

    def result(self) -> T:
        """What the call gave, once it has ended; what it raised is raised here."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value
