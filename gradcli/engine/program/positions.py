"""Capture of a step of a sequence: recorded at a few positions, then replayed at every position.

From one position to the next, a tensor's first and last element move by a fixed number of elements:
the cache of keys has one more, the row of a position is the next one. The recordings at the first
and the last position give these numbers; the current step and the second one must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from gradcli.engine.device.program import Growth
from gradcli.engine.program.agree import memory_differs
from gradcli.engine.program.capture import Captured
from gradcli.engine.program.entry import Entry, program_of, tensors_in
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.planned import ProgramPlan
from gradcli.engine.program.record import Buffer, Call, Recording, View
from gradcli.engine.program.replay import Program
from gradcli.engine.shape import Shape
from gradcli.errors import CaptureError, GradcliError

_DIMS = 8  # of a tensor, as call.h has them
# A value computed from no tensor may change with the position.
_PASSES = [name for name in PASSES if name != "constants"]


class PositionSource(Protocol):
    """Where in its sequence a step is made."""

    @property
    def position(self) -> int:
        """That of the step to come."""
        ...

    @property
    def stations(self) -> Sequence[int]:
        """The first position of such a step, others where it is looked at, and the last."""
        ...

    def visit(self, position: int) -> AbstractContextManager[None]:
        """A step inside the block is made there, and changes nothing that Python keeps up."""
        ...


class PositionCapture(Captured):
    """A step that is replayed at every position once it was seen at one; see `Captured`."""

    def __init__(
        self,
        step: Callable[..., object],
        source: PositionSource,
        *,
        passes: Iterable[str] = _PASSES,
        on_fallback: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(step, passes, on_fallback, eager=False)
        self._source = source

    def new_entry(self, args: Sequence[object]) -> Entry:
        """One that looks at several positions."""
        entry = PositionEntry.of(args)
        entry.source = self._source
        return entry


class _Far(NamedTuple):
    """A step at another position: what it did, and the shapes of what it gave."""

    recording: Recording
    shapes: list[Shape]


class PositionEntry(Entry):
    """One signature of such a step."""

    source: PositionSource
    here: int
    far: list[_Far]

    def record(
        self, step: Callable[..., object], args: Sequence[object], passes: Sequence[str]
    ) -> tuple[Any, str]:
        """The step, behind those at other positions, which are undone."""
        if any(tensor.device != "cpu" for tensor in tensors_in(args)):
            raise CaptureError("a step of a sequence is captured on the CPU only")
        self.far = [self._visit_at(step, args, position) for position in self.source.stations]
        self.here = self.source.position
        return super().record(step, args, passes)

    def _visit_at(self, step: Callable[..., object], args: Sequence[object], position: int) -> _Far:
        with self.source.visit(position):
            try:
                recorded = self._recorded(step, args)
            except CaptureError:
                raise
            except GradcliError as error:
                raise CaptureError(f"at position {position}: {error.message}") from error
            recorded.undo()
        return _Far(recorded, [array.shape for array in self.outputs])

    def _judge(
        self, pattern: Any, recorded: Recording, args: Sequence[object], passes: Sequence[str]
    ) -> str:
        """Why the step has no program; one recording of it is enough beside the others."""
        reason = super()._judge(pattern, recorded, args, passes)
        if reason:
            return reason
        if any(far.shapes != [array.shape for array in self.outputs] for far in self.far):
            return "its results have other shapes at other positions"
        return self._compile(recorded, passes)

    def _program(self, recorded: Recording, passes: Sequence[str]) -> Program:
        recordings = recorded, *(far.recording for far in self.far)
        lists = [optimized(recording.calls, passes) for recording in recordings]
        calls, growths = _grown(lists, [self.here, *self.source.stations])
        program = program_of(calls, recorded, self.inputs)
        assert isinstance(program, Program)
        program.grow(growths)
        program.move_to(self.here)
        return program

    def one_step(self, program: Any, args: Sequence[object]) -> Any:
        """The step at the position of now."""
        program.move_to(self.source.position)
        return super().one_step(program, args)


def _grown(
    lists: Sequence[Sequence[Call]], positions: Sequence[int]
) -> tuple[list[Call], list[Growth]]:
    """The calls with the numbers of the last position, which needs most memory, and their growth.

    The first list is the current step's, the rest are the stations'.
    """
    here, first, *_, last = lists
    if len({len(calls) for calls in lists}) > 1:
        raise CaptureError("it makes other calls at other positions")
    if any(call.function is not None for call in here):
        raise CaptureError("it calls a function of Python")
    if _waves(first) != _waves(last):
        raise CaptureError("its calls depend on each other in another way at other positions")
    pairs: list[dict[Buffer, Buffer]] = [{} for _ in lists]
    growths: list[Growth] = []
    for number, calls in enumerate(zip(*lists, strict=True)):
        try:
            for call, pairs_of in zip(calls, pairs, strict=True):
                _check_same(calls[0], call, pairs_of)
            growths += [(number, *growth) for growth in _growths(calls, positions)]
        except CaptureError as error:
            raise CaptureError(f"its call {number}, '{calls[0].name}', {error.message}") from None
    return [_move(a, b) for a, b in zip(here, last, strict=True)], growths


def _waves(calls: Sequence[Call]) -> object:
    return ProgramPlan(calls).parts


def _check_same(a: Call, b: Call, pairs: dict[Buffer, Buffer]) -> None:
    """Refuse calls that differ in more than the numbers that may grow."""
    if (a.kernel, a.options, len(a.sizes)) != (b.kernel, b.options, len(b.sizes)):
        raise CaptureError("is another at other positions")
    if [(v.dtype, len(v.shape)) for v in a.views] != [(v.dtype, len(v.shape)) for v in b.views]:
        raise CaptureError("has other tensors at other positions")
    reason = memory_differs(a, b, pairs)
    if reason:
        raise CaptureError(reason)


def _growths(
    calls: Sequence[Call], positions: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    """The numbers of a call that are not the same at all positions: growths without the call."""
    numbers = [_numbers(call) for call in calls]
    _, first, *_, last = positions
    for at in numbers[0]:
        begin, end = numbers[1][at], numbers[-1][at]
        by = (end - begin) // (last - first)
        start = begin - first * by
        if any(
            row[at] != start + position * by
            for row, position in zip(numbers, positions, strict=True)
        ):
            raise CaptureError("does not grow evenly from position to position")
        if by:
            yield *at, start, by


def _numbers(call: Call) -> dict[tuple[int, int], int]:
    """The sizes of a call and where its tensors lie, by the fields of gc_growth that name them."""
    numbers = {(-1, i): size for i, size in enumerate(call.sizes)}
    for tensor, view in enumerate(call.views):
        numbers[tensor, 0] = view.offset
        numbers |= {(tensor, 1 + i): size for i, size in enumerate(view.shape)}
        numbers |= {(tensor, 1 + _DIMS + i): step for i, step in enumerate(view.strides)}
    return numbers


def _move(here: Call, there: Call) -> Call:
    """The call of another position, in the memory of this one."""
    views = []
    for mine, far in zip(here.views, there.views, strict=True):
        mine.buffer.nbytes = max(mine.buffer.nbytes, far.buffer.nbytes)
        views.append(View(mine.buffer, far.offset, far.shape, far.strides, far.dtype))
    count = len(here.inputs)
    return Call(here.kernel, tuple(views[:count]), tuple(views[count:]), there.sizes, here.options)
