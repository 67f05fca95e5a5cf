"""A sign of life of a rank that works by itself, such as on data, while the others wait for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.engine.distributed.group import Group

BETWEEN = 0.25  # seconds between two signs of life
_MOST = 256  # messages a second


class Pulse:
    """Inside the block a thread tells the other ranks again and again that this one lives.

    However long it takes, they wait; a rank that is killed or stopped has no pulse. The block must
    not exchange anything: one thread at a time may talk to the others.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._between = max(BETWEEN, group.size / _MOST)
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if self._group.size > 1 and self._group.has_pulse():
            self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
            self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        while not self._ends.wait(self._between):
            self._group.send_pulse()
