"""engine.capture: a step that runs eagerly until it is known, and is replayed from then on."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.engine import graph, recording
from gradcli.engine.argument import checked
from gradcli.engine.array import Array, copy_into, empty, empty_beside
from gradcli.engine.autocast import autocasting
from gradcli.engine.device import cpu
from gradcli.engine.device.program import Wires, copy, overwrite
from gradcli.engine.dtype import float32
from gradcli.engine.op import composing
from gradcli.engine.precision import get_float32_matmul_precision
from gradcli.engine.program.agree import difference
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.engine.program.replay import Program
from gradcli.engine.program.values import Pattern, leaves, rebuilt
from gradcli.engine.program.wires import bind, feeds_from, takes_into
from gradcli.engine.tensor import OPS, Tensor
from gradcli.errors import CaptureError, GradcliError, OptionError, ShapeError

if TYPE_CHECKING:
    from gradcli.engine.program.on_device import DeviceProgram

MAX_PROGRAMS = 64  # of one captured step


@dataclass
class _Entry:
    """What is known of one signature: two recordings that agree make a program.

    Attributes:
        inputs: memory of the program's own for each tensor given.
        outputs: where each tensor that comes back lies.
        private: the inputs that nobody but the program's calls can look at after a step.
        refused: why this signature stays eager.
        wires: what a single replay copies in and out.
    """

    inputs: list[Array]
    recording: Recording | None = None
    program: Program | DeviceProgram | None = None
    pattern: Pattern = None
    outputs: list[Array] = field(default_factory=list)
    private: list[int] = field(default_factory=list)
    refused: str = ""
    wires: tuple[Wires, Wires] | None = None

    def holds(self) -> bool:
        """True while what Python took for granted is still so."""
        known = self.recording
        return known is None or all(getattr(o, name) == value for o, name, value in known.assumed)


@dataclass(frozen=True)
class Steps:
    """What came of several steps: `outputs` has a row for each one that was begun."""

    outputs: Any
    done: int
    error: GradcliError | None


class Captured:
    """A step that is replayed without Python once it has been seen twice; made by `capture`.

    For each signature (shapes and types of the tensors, other arguments by value) the step runs
    eagerly twice while its kernel calls are recorded. If both times are the same calls, and a
    replay gives the same bits, later calls replay. Otherwise the step stays eager, and
    `why_not` says why.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        passes: Iterable[str],
        on_refusal: Callable[[str], None],
        eager: bool,
    ) -> None:
        self._step = step
        self._eager = eager
        self._passes = tuple(passes)
        self._on_refusal = on_refusal
        self._entries: dict[Any, list[_Entry]] = {}
        self._overrun = False

    @property
    def why_not(self) -> str:
        """Why a signature stays eager; empty when none does."""
        found = (e.refused for entries in self._entries.values() for e in entries if e.refused)
        return next(found, "")

    @property
    def programs(self) -> list[Program | DeviceProgram]:
        """The programs made so far, one for each signature."""
        return [e.program for list_ in self._entries.values() for e in list_ if e.program]

    def __call__(self, *args: Any) -> Any:
        """What the step gives; its tensors are the caller's own and have no history."""
        entry = self._entry(args)
        if entry.program is None:
            return self._eagerly(entry, args)
        return self._replay_one(entry, entry.program, args)

    def scan(self, *args: Any) -> Any:
        """The step for each row of the tensors given; what comes back is stacked in the same way.

        The same as a loop over the rows, without Python in between (jax calls it lax.scan).
        """
        result = self.steps(*args)
        if result.error is not None:
            raise result.error
        return result.outputs

    def steps(self, *args: Any) -> Steps:
        """As `scan`, but a value that a kernel refused ends the steps instead of raising."""
        tensors = _tensors(args)
        count = _count(tensors)
        results: list[Any] = []
        for i in range(count):
            row = [a[i] if isinstance(a, Tensor) else a for a in args]
            entry = self._entry(row)
            if entry.program is not None:
                rest = [a[i:].array.contiguous() for a in tensors]
                replayed = self._replay(entry, rest, count - i)
                return _joined(results, replayed)
            try:
                results.append(self._eagerly(entry, row))
            except CaptureError:
                raise
            except GradcliError as error:
                return _joined(results, Steps(None, 0, error))
        return _joined(results, Steps(None, 0, None))

    # One signature.

    def _entry(self, args: Sequence[Any]) -> _Entry:
        if recording.current() is not None:
            return _Entry([], refused="its calls belong to the step around it")
        key = (*_surroundings(), *(_signature(a) for a in args))
        entries = self._entries.setdefault(key, [])
        for entry in entries:
            if entry.holds():
                return entry
        if sum(map(len, self._entries.values())) > MAX_PROGRAMS:
            return self._one_too_many(key)
        inputs = [empty_beside(a.array) for a in _tensors(args)]
        entries.append(_Entry(inputs))
        return entries[-1]

    def _one_too_many(self, key: Any) -> _Entry:
        """An entry that stays eager, so that arguments which never repeat cost no memory."""
        del self._entries[key]
        if not self._overrun:
            self._overrun = True
            self._on_refusal(
                f"the step is not captured for more than {MAX_PROGRAMS} kinds of arguments; "
                "pass numbers that change as tensors"
            )
        return _Entry([], refused="too many kinds of arguments")

    def _eagerly(self, entry: _Entry, args: Sequence[Any]) -> Any:
        if entry.refused or self._eager:
            return self._step(*args)
        try:
            returned = self._record(entry, args)
            entry.private = _private(entry)
            return returned
        except CaptureError as error:
            self._refuse(entry, error.message)
            return self._step(*args)

    def _refuse(self, entry: _Entry, why: str) -> None:
        entry.refused, entry.recording, entry.inputs = why, None, []
        self._on_refusal(why)

    def _record(self, entry: _Entry, args: Sequence[Any]) -> Any:
        given = iter(entry.inputs)
        own = [_own(a, next(given)) if isinstance(a, Tensor) else a for a in args]
        recorded = Recording()
        try:
            with recording.to(recorded):
                entry.pattern, results = leaves(self._step(*own))
                entry.outputs = [tensor.array.contiguous() for tensor in results]
        except CaptureError:
            recorded.undo()  # the step will be made again, eagerly
            raise
        del results, own
        recorded.close()
        if _overwritten(recorded, entry.inputs):
            for tensor, mine in zip(_tensors(args), entry.inputs, strict=True):
                copy_into(tensor.array, mine)
            self._refuse(entry, "the step is not captured: it overwrites one of its arguments")
        before, entry.recording = entry.recording, recorded
        returned = rebuilt(entry.pattern, [Tensor(array.copy()) for array in entry.outputs])
        if before is not None and not entry.refused:
            why = difference(before, recorded) or self._compile(entry, recorded)
            if why:
                self._refuse(entry, f"the step is not captured: {why}")
        recorded.forget()
        return returned

    def _compile(self, entry: _Entry, recorded: Recording) -> str:
        """Make the program, and let it prove itself: why it could not, or nothing."""
        changed = {v.buffer for call in recorded.calls for v in call.outputs if v.buffer.kept}
        cpu.trim()  # the eager step's memory, before the program takes its own
        try:
            program = _program(optimized(recorded.calls, self._passes), recorded, entry.inputs)
        except CaptureError as error:
            return error.message
        after = {b: copy(b.storage) for b in changed if b.storage is not None}
        _put_back({b: b.before for b in changed if b.before is not None})
        program.prove()
        wrong = [b for b, data in after.items() if b.storage and copy(b.storage) != data]
        if wrong:
            _put_back(after)
            return f"a replay gave other bits than the step itself in {len(wrong)} tensors"
        entry.program = program
        return ""

    def _replay_one(
        self, entry: _Entry, program: Program | DeviceProgram, args: Sequence[Any]
    ) -> Any:
        """One step; what it copies in and out is listed once, and aimed anew each time."""
        given = [a.array.contiguous() for a in args if isinstance(a, Tensor)]
        if not isinstance(program, Program):
            results = program.one_step(entry.inputs, given, entry.outputs)
            return rebuilt(entry.pattern, [Tensor(array) for array in results])
        made = [empty(array.shape, array.dtype) for array in entry.outputs]
        if entry.wires is None:
            entry.wires = feeds_from(given, entry.inputs), takes_into(entry.outputs, made, False)
        feeds, takes = entry.wires
        for i, array in enumerate(given):
            feeds.draw(i, array.place)
        bind(entry.private, program, feeds, entry.inputs, given)
        for i, array in enumerate(made):
            takes.aim(i, array.storage.data)
        _, error = program.replay(1, feeds, takes)
        if error is not None:
            raise error
        return rebuilt(entry.pattern, [Tensor(array) for array in made])

    def _replay(self, entry: _Entry, given: Sequence[Array], count: int) -> Steps:
        """`count` steps on the rows of what is given, their outputs stacked."""
        program = entry.program
        assert program is not None
        if not isinstance(program, Program):
            results, whole, error = program.steps(entry.inputs, given, entry.outputs, count)
            return Steps(rebuilt(entry.pattern, [Tensor(a) for a in results]), whole, error)
        made = [empty((count, *array.shape), array.dtype) for array in entry.outputs]
        feeds, takes = feeds_from(given, entry.inputs), takes_into(entry.outputs, made, True)
        bind(entry.private, program, feeds, entry.inputs, given)
        done, error = program.replay(count, feeds, takes)
        if error is not None:
            for array, into in zip(entry.outputs, made, strict=True):
                copy_into(into.view(array.shape, array.strides, done * array.numel), array)
            made = [Tensor(array)[: done + 1].array for array in made]
        return Steps(rebuilt(entry.pattern, [Tensor(array) for array in made]), done, error)


@checked
def capture(
    step: Callable[..., Any],
    *,
    passes: Iterable[str] = tuple(PASSES),
    on_refusal: Callable[[str], None] | None = None,
    eager: bool = False,
) -> Captured:
    """A function that replays what `step` does, without Python, once it has seen it twice.

    The step's arguments are tensors and plain values; what it returns are tensors, also inside
    tuples, lists and dicts. Parameters, optimizer state and everything else that it reads without
    being given must be tensors that are changed in place. Where a step cannot be captured, it
    runs eagerly as before, and `on_refusal` is told why (by default with a warning). With `eager`
    nothing is captured at all.
    """
    chosen = tuple(passes)
    for name in chosen:
        if not isinstance(name, str) or name not in PASSES:
            raise OptionError(f"capture: no pass {name!r:.60}; passes are {', '.join(PASSES)}")
    return Captured(step, chosen, on_refusal or _warn, eager)


def _program(
    calls: Sequence[Call], recorded: Recording, inputs: Sequence[Array]
) -> Program | DeviceProgram:
    """The program of a recorded step, where its memory lies."""
    devices = {v.buffer.device for call in calls for v in call.views} - {None}
    if not devices:
        return Program(calls, recorded, inputs)
    from gradcli.engine.program.on_device import DeviceProgram  # nobody else need wait for it

    return DeviceProgram(calls, recorded, inputs, devices.pop())


def _warn(why: str) -> None:
    warnings.warn(why, stacklevel=2)


def _surroundings() -> tuple[Any, ...]:
    """What the calls of a step depend on beside its arguments."""
    return graph.recording(), composing(), autocasting(), get_float32_matmul_precision()


def _signature(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device
    if value is None or isinstance(value, (bool, int, float, str)):
        return type(value), value
    raise OptionError(f"capture: a step takes tensors and plain values, got {type(value).__name__}")


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    return [a for a in args if isinstance(a, Tensor)]


def _overwritten(recorded: Recording, inputs: Sequence[Array]) -> bool:
    mine = {id(array.storage) for array in inputs}
    return any(id(v.buffer.storage) in mine for call in recorded.calls for v in call.outputs)


def _own(given: Tensor, own: Array) -> Tensor:
    """The program's copy of an argument."""
    if given.requires_grad:
        raise CaptureError(
            "capture: an argument asks for a gradient; keep such a tensor outside the arguments"
        )
    copy_into(own, given.array)
    return Tensor(own.view(own.shape, own.strides))  # an Array of its own: see _private


def _count(tensors: Sequence[Tensor]) -> int:
    lengths = {t.shape[0] if t.shape else 0 for t in tensors}
    if len(lengths) != 1:
        raise ShapeError(f"scan: needs tensors with one number of rows, got {sorted(lengths)}")
    count = lengths.pop()
    if count == 0:
        raise ShapeError("scan: needs tensors with at least one row, got none; give one a step")
    return count


def _private(entry: _Entry) -> list[int]:
    """Inputs that the step neither returns nor keeps, told by who holds their memory."""
    calls = entry.recording.calls if entry.recording is not None else []
    buffers = {v.buffer for call in calls for v in call.views}
    ours = Counter(id(buffer.storage) for buffer in buffers)
    lone = empty((), float32)
    alone = sys.getrefcount(lone.storage)
    return [
        i
        for i, array in enumerate(entry.inputs)
        if sys.getrefcount(array.storage) == alone + ours[id(array.storage)]
    ]


def _put_back(content: dict[Buffer, bytes]) -> None:
    for buffer, data in content.items():
        if buffer.storage is not None:
            overwrite(buffer.storage, data)


def _joined(first: Sequence[Any], rest: Steps) -> Steps:
    """Results of single steps, and those of the steps after them, stacked."""
    if not first:
        return rest
    patterns = [leaves(result) for result in first]
    pattern, columns = (
        patterns[0][0],
        [list(column) for column in zip(*(p[1] for p in patterns), strict=True)],
    )
    later = leaves(rest.outputs)[1] if rest.outputs is not None else []
    tensors = []
    for i, column in enumerate(columns):
        parts = [t.reshape(1, *t.shape) for t in column]
        tensors.append(OPS["cat"]([*parts, later[i]] if later else parts))
    return Steps(rebuilt(pattern, tensors), len(first) + rest.done, rest.error)
