"""Presence: whether anyone looks on; who would tell them costs nothing while nobody does."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock


class Presence:
    """Counts who is there, and switches the watches on with the first and off after the last."""

    def __init__(self) -> None:
        self._watches: list[Callable[[bool], None]] = []
        self._count = 0
        self._door = RLock()  # to the number
        # Nobody is at the door when a process forks, or the child would wait for it forever.
        os.register_at_fork(
            before=self._door.acquire,
            after_in_parent=self._door.release,
            after_in_child=self._door.release,
        )

    def watch(self, switch: Callable[[bool], None]) -> None:
        """Call `switch(True)` when the first one enters, `switch(False)` when the last has left."""
        self._watches.append(switch)

    def enter(self) -> None:
        """One more is there."""
        self._change(1)

    def leave(self) -> None:
        """One less is there."""
        self._change(-1)

    def _change(self, more: int) -> None:
        with self._door:
            before = self._count
            self._count += more
            if not before or not self._count:
                for switch in self._watches:
                    switch(not before)
