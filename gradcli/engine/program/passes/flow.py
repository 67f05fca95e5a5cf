"""Who reads and writes what in a list of calls: the question that every pass asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli.engine.program.record import Buffer, Call, View
from gradcli.engine.shape import Shape, view_strides


class _Use(NamedTuple):
    call: int
    low: int
    high: int
    writes: bool


class Flow:
    """The uses of each buffer, by the calls' numbers.

    A function of Python (see outside.py) may do anything: nothing is moved from one side of its
    call to the other.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = list(calls)
        self._uses: dict[Buffer, list[_Use]] = {}
        self._checks = [i for i, call in enumerate(calls) if not call.outputs]
        self._outside = [i for i, call in enumerate(calls) if call.function is not None]
        for i, call in enumerate(calls):
            self._enter(i, call)

    def _enter(self, number: int, call: Call) -> None:
        for views, writes in ((call.inputs, False), (call.outputs, True)):
            for view in views:
                if 0 not in view.shape:
                    use = _Use(number, *view.extent, writes)
                    self._uses.setdefault(view.buffer, []).append(use)

    def change(self, changes: Mapping[int, Call | None]) -> None:
        """Other calls in place of some; None for one that uses nothing any more."""
        buffers = {view.buffer for number in changes for view in self.calls[number].views}
        for buffer in buffers:
            self._uses[buffer] = [u for u in self._uses.get(buffer, []) if u.call not in changes]
        for number, call in changes.items():
            if call is not None:
                self.calls[number] = call
                self._enter(number, call)
                buffers.update(view.buffer for view in call.views)
        for buffer in buffers:
            self._uses.get(buffer, []).sort(key=lambda use: use.call)

    def maker(self, buffer: Buffer) -> int | None:
        """The only call that writes to a buffer, if there is only one and no reader before."""
        writers = self.writers(buffer)
        alone = len(writers) == 1 and self._uses[buffer][0].call == writers[0]
        return writers[0] if alone else None

    def readers(self, buffer: Buffer) -> list[int]:
        """The calls that read a buffer."""
        return sorted({use.call for use in self._uses.get(buffer, []) if not use.writes})

    def writers(self, buffer: Buffer) -> list[int]:
        """The calls that write to a buffer."""
        return sorted({use.call for use in self._uses.get(buffer, []) if use.writes})

    def is_written(self, view: View, after: int, before: int) -> bool:
        """Whether a call between the two writes any of these elements, or may."""
        has_write = any(use.writes for use in self._between(view, after, before))
        return has_write or self._is_cut(after, before)

    def users(self, view: View, after: int, before: int) -> set[int]:
        """The calls between the two that read or write any of these elements."""
        return {use.call for use in self._between(view, after, before)}

    def checks(self, after: int, before: int) -> bool:
        """Whether a call between the two only checks something: what is kept waits for it."""
        return any(after < i < before for i in self._checks)

    def _is_cut(self, after: int, before: int) -> bool:
        """Whether a function is called between the two."""
        return any(after < i < before for i in self._outside)

    def _between(self, view: View, after: int, before: int) -> list[_Use]:
        low, high = view.extent
        return [
            use
            for use in self._uses.get(view.buffer, [])
            if after < use.call < before and use.low < high and low < use.high
        ]

    def may_be_written_at(self, view: View, earlier: int, now: int) -> bool:
        """Whether what call `now` writes could already be written by call `earlier`.

        Between the two nobody may use the elements; and what is kept waits for the calls that
        only check something.
        """
        checked = view.buffer.persistent and self.checks(earlier, now)
        free = not checked and not self._is_cut(earlier, now)
        return free and not self._between(view, earlier, now)


def as_shape(view: View, shape: Shape) -> View | None:
    """The same elements in the same order under another shape; None where that needs a copy."""
    if view.shape == shape:
        return view
    strides = view_strides(view.shape, view.strides, shape)
    if strides is None:
        return None
    return View(view.buffer, view.offset, shape, strides, view.dtype)


def nothing_like(view: View) -> View:
    """A tensor without elements: an optional one that is not there."""
    return View(Buffer(0, internal=True, device=view.buffer.device), 0, (0,), (1,), view.dtype)


def meets(a: View, b: View) -> bool:
    """Whether the two could share an element."""
    if a.buffer is not b.buffer:
        return False
    (low, high), (begin, end) = a.extent, b.extent
    return begin < high and low < end


def view_in(view: View, base: View) -> View | None:
    """What `view` sees of its buffer, if all of that lay in `base`, in order, instead.

    None where no strides say that.
    """
    if view.dtype is not base.dtype:
        return None
    if base.contiguous:
        offset = base.offset + view.offset
        return View(base.buffer, offset, view.shape, view.strides, view.dtype)
    return as_shape(base, view.shape) if view.whole else None
