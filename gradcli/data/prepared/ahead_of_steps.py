"""Pages of mapped samples, asked for before a step needs them: the order of samples is known.

A thread tells the system which pages come next (madvise), while the steps before compute. It is
advice: nothing waits for it, and no number depends on it. While nothing has to be read, because the
files lie in the page cache, it asks ever more seldom.
"""

from __future__ import annotations

import contextlib
import mmap
import queue
import resource
import threading
from array import array
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from gradcli.data.prepared.mapped import mappings
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import will_need
from gradcli.free_memory import free_memory

AHEAD = 64 << 20  # bytes at most that are asked for at a time
RARELY = 16  # times that are passed over at most, while nothing has to be read
SOME = 512  # stretches that are asked for in one call
Span = tuple[Tensor, Sequence[int], int]


@runtime_checkable
class Spanning(Protocol):
    """A split that knows where its samples lie."""

    def spans(self, indices: Tensor) -> Iterable[Span]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""


@dataclass(frozen=True)
class _FileRegion:
    """Where a tensor lies in a mapped file, or in several joined ones."""

    view: mmap.mmap
    address: int
    start: int  # bytes of the view before it
    row: int  # bytes of one

    def ask(self, firsts: Sequence[int], rows: int) -> None:
        will_need(self.address, array("q", firsts), self.row, rows * self.row)

    def expect_single_rows(self, rows: int) -> None:
        """Let a missing page be read alone, not with all that lies around it."""
        page = self.start - self.start % mmap.PAGESIZE
        length = self.start + rows * self.row - page
        self.view.madvise(mmap.MADV_RANDOM, page, length)


class AheadOfSteps:
    """Asks for the samples of steps to come; `begin` gives None where no sample is mapped."""

    def __init__(self, split: Spanning, mapped: dict[int, _FileRegion], sample: int) -> None:
        self._split = split
        self._mapped = mapped
        self._sample = sample  # bytes of one
        self._spans: queue.Queue[list[Span] | None] = queue.Queue(maxsize=4)
        self._rest = self._rests = 0
        self._latest = _read()
        self._thread = threading.Thread(target=self._work, name="pages", daemon=True)
        self._thread.start()

    @classmethod
    def begin(cls, split: object, first: Tensor) -> AheadOfSteps | None:
        """Start for a training with these first samples; None where no data is mapped."""
        if not isinstance(split, Spanning):
            return None
        tensors = {id(tensor): (tensor, rows) for tensor, _, rows in split.spans(first)}
        regions = {number: _find_region(tensor) for number, (tensor, _) in tensors.items()}
        mapped = {number: region for number, region in regions.items() if region is not None}
        if not mapped:
            return None
        total = sum(tensors[i][0].shape[0] * region.row for i, region in mapped.items())
        if total > (free_memory() or 0) // 2:  # smaller data is read faster in larger pieces
            for number, region in mapped.items():
                with contextlib.suppress(OSError):
                    region.expect_single_rows(tensors[number][0].shape[0])
        sample = sum(region.row * tensors[number][1] for number, region in mapped.items())
        return cls(split, mapped, sample)

    def steps(self, batch: int) -> int:
        """How many steps with `batch` samples are asked for at a time."""
        return max(1, AHEAD // (batch * max(1, self._sample)))

    def ask(self, indices: Tensor) -> None:
        """Ask for these samples, unless there is still too much to ask."""
        with contextlib.suppress(queue.Full):
            self._spans.put_nowait(list(self._split.spans(indices.reshape(-1))))

    def close(self) -> None:
        """Stop asking for pages."""
        self._mapped = {}
        with contextlib.suppress(queue.Empty):
            while True:
                self._spans.get_nowait()
        self._spans.put_nowait(None)

    def is_of_use(self) -> bool:
        """Whether anything was read since the last time, or has not been tried for long."""
        now, before = _read(), self._latest
        self._latest = now
        if now != before:
            self._rest = self._rests = 0
            return True
        if self._rests:
            self._rests -= 1
            return False
        self._rest = self._rests = min(2 * self._rest or 1, RARELY)
        return True

    def _work(self) -> None:
        while self._mapped and (spans := self._spans.get()) is not None:
            for tensor, firsts, rows in spans:
                for begin in range(0, len(firsts), SOME):
                    region = self._mapped.get(id(tensor))  # None after `close`
                    if region is not None:
                        region.ask(firsts[begin : begin + SOME], rows)


def _find_region(tensor: Tensor) -> _FileRegion | None:
    """The place of a tensor in a mapped file; None if it is not in one."""
    array = tensor.array
    if tensor.device != "cpu" or not array.is_contiguous():
        return None
    begin = cpu.address(array.storage) + array.offset * tensor.dtype.size
    row = tensor[0].numel() * tensor.dtype.size if tensor.shape[0] else 0
    for mapping in mappings():
        start = begin - mapping.address + mapping.start
        if 0 <= start < len(mapping.view):
            return _FileRegion(mapping.view, begin, start, row)
    return None


def _read() -> tuple[int, int]:
    """What this process has read of disks so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_inblock, usage.ru_majflt
