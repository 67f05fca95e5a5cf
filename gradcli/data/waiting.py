"""For how long steps waited for their samples, where Python gathers them.

A captured step that gathers them itself is timed by its program (`sampling_seconds`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gradcli.engine import recording

_seconds = [0.0]


def waited(seconds: float) -> None:
    """A step could not go on for so long, because its samples were not there."""
    _seconds[0] += seconds


def total() -> float:
    """All that this process waited so far."""
    return _seconds[0]


@contextmanager
def gathering() -> Iterator[None]:
    """Inside a `with` block a step gathers its samples, now or whenever it is replayed."""
    if recording.current() is not None:
        with recording.sampling():
            yield
        return
    began = time.perf_counter()
    yield
    waited(time.perf_counter() - began)
