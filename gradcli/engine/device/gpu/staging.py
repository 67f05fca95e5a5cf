"""Staging: a ring of memory through which bytes go to a device, used again when they have left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from gradcli.errors import DeviceError

MOST_STAGING = 1 << 30  # bytes of a ring
MOST_MARKS = 64  # that live at a time
_STRETCHES = MOST_MARKS // 2  # the rest is for ends of the ring that a piece does not fit into


def ring_for(nbytes: int) -> int:
    """The bytes of a ring through which two blocks of so many are on their way at once."""
    unit = 1 << 20
    return min(-(-2 * nbytes // unit) * unit, MOST_STAGING)


class Staging(ABC):
    """A driver whose writes from the host go through a ring, which grows for large ones."""

    _ring: Ring

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything queued."""

    @abstractmethod
    def _stage_through(self, nbytes: int) -> None:
        """Make a ring of so many bytes, and give back the memory of the one before."""

    def stage(self, nbytes: int) -> None:
        """Let two writes of so many bytes be on their way at once, if there is memory for that."""
        size = ring_for(nbytes)
        if size > self._ring.nbytes:
            self.synchronize()
            with suppress(DeviceError):  # less is slower, and no more than that
                self._stage_through(size)


class Ring:
    """Pieces of one block, given out in order.

    What is queued runs in order, so one mark serves a stretch of pieces: `mark` queues one behind
    all that was queued, and `wait` waits until a mark is reached.
    """

    def __init__(
        self, nbytes: int, mark: Callable[[], object], wait: Callable[[Any], None]
    ) -> None:
        self.nbytes = nbytes
        self._mark, self._wait = mark, wait
        self._begin = self._head = 0  # of the pieces that no mark stands behind yet
        self._stretches: deque[tuple[int, int, Any]] = deque()  # begin, end, mark; oldest first

    def pieces(self, data: bytes | memoryview) -> Iterator[tuple[int, int, memoryview]]:
        """Data by pieces: where each begins in it and in the block, for the caller to queue.

        A piece is a quarter at most: several are on their way while one is filled.
        """
        whole = memoryview(data)
        view = whole.cast("B") if whole.nbytes else whole
        for first in range(0, view.nbytes, self.nbytes // 4):
            piece = view[first : first + self.nbytes // 4]
            yield first, self.take(len(piece)), piece
            self.queued()

    def take(self, nbytes: int) -> int:
        """Where the next piece begins, after waiting until what lay there has left."""
        assert 0 < nbytes <= self.nbytes, "a piece is larger than its ring"
        begin = -(-self._head // 16) * 16
        if begin + nbytes > self.nbytes:
            self._close()
            while self._stretches and self._stretches[0][0] >= self._head:
                self._pass()  # those behind the head are the oldest
            begin = self._begin = self._head = 0
        while (
            self._stretches
            and self._stretches[0][0] < begin + nbytes
            and begin < self._stretches[0][1]
        ):
            self._pass()
        self._head = begin + nbytes
        return begin

    def queued(self) -> None:
        """The piece that was taken last is on its way."""
        if self._head - self._begin >= self.nbytes // _STRETCHES:
            self._close()

    def _close(self) -> None:
        """Put a mark behind what has none."""
        if self._begin < self._head:
            self._stretches.append((self._begin, self._head, self._mark()))
            self._begin = self._head

    def _pass(self) -> None:
        self._wait(self._stretches.popleft()[2])
