"""Staging: a ring of memory through which bytes go to a device, used again when they have left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class Ring:
    """Pieces of one block, given out in order; `wait` waits for what marks that one has left."""

    def __init__(self, nbytes: int, wait: Callable[[Any], None]) -> None:
        self.nbytes = nbytes
        self._wait = wait
        self._head = 0
        self._pieces: deque[tuple[int, int, Any]] = deque()  # begin, end, mark; oldest first

    def take(self, nbytes: int) -> int:
        """Where the next piece begins, once nothing in it is still to leave."""
        assert 0 < nbytes <= self.nbytes, "a piece is larger than its ring"
        begin = -(-self._head // 16) * 16
        if begin + nbytes > self.nbytes:
            while self._pieces and self._pieces[0][0] >= self._head:
                self._pass()  # those behind the head are the oldest
            begin = 0
        while self._pieces and self._pieces[0][0] < begin + nbytes and begin < self._pieces[0][1]:
            self._pass()
        self._head = begin + nbytes
        return begin

    def left(self, begin: int, mark: Any) -> None:
        """The piece that was taken last is on its way; `mark` says when it has left."""
        self._pieces.append((begin, self._head, mark))

    def _pass(self) -> None:
        self._wait(self._pieces.popleft()[2])
