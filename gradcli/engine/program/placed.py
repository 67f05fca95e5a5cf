"""A step of a sequence: recorded at a few places of it, then replayed at every place.

From one place to the next a tensor begins, and ends, a fixed number of elements further on: keys
that were kept so far are one more, the row of a position is the next one. Recordings at the first
and the last place say by how much; the step at hand, and the one next to the first, must lie on the
line between them.
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
# What is computed of no tensor may be another at each place.
_PASSES = [name for name in PASSES if name != "constants"]


class Places(Protocol):
    """Where in its sequence a step is made."""

    @property
    def place(self) -> int:
        """That of the step to come."""
        ...

    @property
    def stations(self) -> Sequence[int]:
        """The first place of such a step, others where it is looked at, and the last."""
        ...

    def visit(self, place: int) -> AbstractContextManager[None]:
        """A step inside the block is made there, and changes nothing that Python keeps up."""
        ...


class PlacedCapture(Captured):
    """A step that is replayed at every place once it was seen at one; see `Captured`."""

    def __init__(
        self,
        step: Callable[..., object],
        places: Places,
        *,
        passes: Iterable[str] = _PASSES,
        on_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(step, passes, on_refusal, eager=False)
        self._places = places

    def new_entry(self, args: Sequence[object]) -> Entry:
        """One that looks at several places."""
        entry = PlacedEntry.of(args)
        entry.places = self._places
        return entry


class _Far(NamedTuple):
    """A step at another place: what it did, and the shapes of what it gave."""

    recording: Recording
    shapes: list[Shape]


class PlacedEntry(Entry):
    """One signature of such a step."""

    places: Places
    here: int
    far: list[_Far]

    def record(
        self, step: Callable[..., object], args: Sequence[object], passes: Sequence[str]
    ) -> tuple[Any, str]:
        """The step, behind those at other places, which are undone."""
        if any(tensor.device != "cpu" for tensor in tensors_in(args)):
            raise CaptureError("a step of a sequence is captured on the CPU only")
        self.far = [self._visited(step, args, place) for place in self.places.stations]
        self.here = self.places.place
        return super().record(step, args, passes)

    def _visited(self, step: Callable[..., object], args: Sequence[object], place: int) -> _Far:
        with self.places.visit(place):
            try:
                recorded = self._recorded(step, args)
            except CaptureError:
                raise
            except GradcliError as error:
                raise CaptureError(f"at place {place}: {error.message}") from error
            recorded.undo()
        return _Far(recorded, [array.shape for array in self.outputs])

    def _judge(
        self, pattern: Any, recorded: Recording, args: Sequence[object], passes: Sequence[str]
    ) -> str:
        """Why the step has no program; one recording of it is enough beside the others."""
        why = super()._judge(pattern, recorded, args, passes)
        if why:
            return why
        if any(far.shapes != [array.shape for array in self.outputs] for far in self.far):
            return "its results have other shapes at other places"
        return self._compile(recorded, passes)

    def _program(self, recorded: Recording, passes: Sequence[str]) -> Program:
        recordings = recorded, *(far.recording for far in self.far)
        lists = [optimized(recording.calls, passes) for recording in recordings]
        calls, growths = _grown(lists, [self.here, *self.places.stations])
        program = program_of(calls, recorded, self.inputs)
        assert isinstance(program, Program)
        program.grow(growths)
        program.move_to(self.here)
        return program

    def one_step(self, program: Any, args: Sequence[object]) -> Any:
        """The step at the place of now."""
        program.move_to(self.places.place)
        return super().one_step(program, args)


def _grown(
    lists: Sequence[Sequence[Call]], places: Sequence[int]
) -> tuple[list[Call], list[Growth]]:
    """The calls with the numbers of the last place, where they need the most memory.

    And how these numbers depend on the place. The first list is of the step at hand, those behind
    it of the stations.
    """
    here, first, *_, last = lists
    if len({len(calls) for calls in lists}) > 1:
        raise CaptureError("it makes other calls at other places")
    if any(call.function is not None for call in here):
        raise CaptureError("it calls a function of Python")
    if _waves(first) != _waves(last):
        raise CaptureError("its calls depend on each other in another way at other places")
    pairs: list[dict[Buffer, Buffer]] = [{} for _ in lists]
    growths: list[Growth] = []
    for number, calls in enumerate(zip(*lists, strict=True)):
        try:
            for call, pairs_of in zip(calls, pairs, strict=True):
                _check_same(calls[0], call, pairs_of)
            growths += [(number, *growth) for growth in _growths(calls, places)]
        except CaptureError as error:
            raise CaptureError(f"its call {number}, '{calls[0].name}', {error.message}") from None
    return [_move(a, b) for a, b in zip(here, last, strict=True)], growths


def _waves(calls: Sequence[Call]) -> object:
    return ProgramPlan(calls).parts


def _check_same(a: Call, b: Call, pairs: dict[Buffer, Buffer]) -> None:
    """Refuse calls that differ in more than the numbers that may grow."""
    if (a.kernel, a.options, len(a.sizes)) != (b.kernel, b.options, len(b.sizes)):
        raise CaptureError("is another at other places")
    if [(v.dtype, len(v.shape)) for v in a.views] != [(v.dtype, len(v.shape)) for v in b.views]:
        raise CaptureError("has other tensors at other places")
    why = memory_differs(a, b, pairs)
    if why:
        raise CaptureError(why)


def _growths(calls: Sequence[Call], places: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """The numbers of a call that are not the same at all places: growths without the call."""
    numbers = [_numbers(call) for call in calls]
    _, first, *_, last = places
    for at in numbers[0]:
        begin, end = numbers[1][at], numbers[-1][at]
        by = (end - begin) // (last - first)
        start = begin - first * by
        if any(row[at] != start + place * by for row, place in zip(numbers, places, strict=True)):
            raise CaptureError("does not grow evenly from place to place")
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
    """The call of another place, in the memory of this one."""
    views = []
    for mine, far in zip(here.views, there.views, strict=True):
        mine.buffer.nbytes = max(mine.buffer.nbytes, far.buffer.nbytes)
        views.append(View(mine.buffer, far.offset, far.shape, far.strides, far.dtype))
    count = len(here.inputs)
    return Call(here.kernel, tuple(views[:count]), tuple(views[count:]), there.sizes, here.options)
