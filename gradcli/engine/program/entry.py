"""One signature of a captured step: recorded twice, compared, compiled, and then replayed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.engine import recording
from gradcli.engine.array import Array, copy_into, empty, empty_beside
from gradcli.engine.device import cpu
from gradcli.engine.device.program import Wires, copy, overwrite
from gradcli.engine.dtype import float32
from gradcli.engine.program.agree import difference
from gradcli.engine.program.passes import optimized
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.engine.program.replay import Program
from gradcli.engine.program.values import Pattern, leaves, rebuilt, same
from gradcli.engine.program.wires import bind, feeds_from, takes_into
from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError, GradcliError

if TYPE_CHECKING:
    from gradcli.engine.program.on_device import DeviceProgram


@dataclass(frozen=True)
class Steps:
    """What came of several steps: `outputs` has a row for each one that was begun.

    One that was refused while Python ran it gave nothing back, and has none.
    """

    outputs: Any
    done: int
    error: GradcliError | None


@dataclass(eq=False)
class Entry:
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

    @classmethod
    def of(cls, args: Sequence[Any]) -> Entry:
        """Nothing is known yet; memory for these arguments."""
        return cls([empty_beside(a.array) for a in args if isinstance(a, Tensor)])

    def holds(self) -> bool:
        """True while what Python took for granted is still so."""
        return self.recording is None or self.recording.holds()

    @property
    def pending(self) -> bool:
        """True between the two recordings."""
        return self.program is None and self.recording is not None

    @property
    def broken(self) -> str:
        """An attribute of a module that is another now than it was."""
        known = self.recording
        return str(known.broken) if known is not None and known.broken is not None else ""

    def outlived(self) -> bool:
        """Look again at what may have changed: true where tensors or modules were replaced."""
        if self.recording is None:
            return False
        self.recording.compare()
        return self.recording.outlived()

    def refuse(self, why: str) -> None:
        """This signature stays eager."""
        self.refused, self.recording, self.inputs = why, None, []

    # Recording.

    def record(
        self, step: Callable[..., Any], args: Sequence[Any], passes: Sequence[str]
    ) -> tuple[Any, str]:
        """The step with its calls written down: what it gives, and why it cannot be captured.

        Raises CaptureError where the step has to be made again, eagerly.
        """
        before = self.pattern
        recorded = self._recorded(step, args)
        returned = rebuilt(self.pattern, [Tensor(array.copy()) for array in self.outputs])
        why = self._judge(before, recorded, args, passes)
        recorded.forget()
        self.private = self._alone()
        return returned, why and f"the step is not captured: {why}"

    def _judge(
        self, pattern: Pattern, recorded: Recording, args: Sequence[Any], passes: Sequence[str]
    ) -> str:
        """Why this recording ends it, or nothing: the second one makes the program."""
        if _overwritten(recorded, self.inputs):
            for tensor, mine in zip(tensors_in(args), self.inputs, strict=True):
                copy_into(tensor.array, mine)
            return "it overwrites one of its arguments"
        before, self.recording = self.recording, recorded
        if before is None:
            return ""
        if not same(pattern, self.pattern):
            return f"it returned {pattern!r:.60} the first time and {self.pattern!r:.60} the second"
        return difference(before, recorded) or self._compile(recorded, passes)

    def _recorded(self, step: Callable[..., Any], args: Sequence[Any]) -> Recording:
        given = iter(self.inputs)
        own = [_own(a, next(given)) if isinstance(a, Tensor) else a for a in args]
        recorded = Recording()
        try:
            with recording.to(recorded):
                self.pattern, results = leaves(step(*own))
                self.outputs = [tensor.array.contiguous() for tensor in results]
            _check_places(tensors_in(own), self.inputs)
        except CaptureError:
            recorded.undo()  # the step will be made again, eagerly
            raise
        del results, own
        recorded.close()
        return recorded

    def _compile(self, recorded: Recording, passes: Sequence[str]) -> str:
        """Make the program, and let it prove itself: why it could not, or nothing."""
        changed = {v.buffer for call in recorded.calls for v in call.outputs if v.buffer.kept}
        cpu.trim()  # the eager step's memory, before the program takes its own
        try:
            program = _program(optimized(recorded.calls, passes), recorded, self.inputs)
        except CaptureError as error:
            return error.message
        after = {b: copy(b.storage) for b in changed if b.storage is not None}
        _put_back({b: b.before for b in changed if b.before is not None})
        program.prove()
        wrong = [b for b, data in after.items() if b.storage and copy(b.storage) != data]
        if wrong:
            _put_back(after)
            return f"a replay gave other bits than the step itself in {len(wrong)} tensors"
        self.program = program
        return ""

    def _alone(self) -> list[int]:
        """Inputs that the step neither returns nor keeps, told by who holds their memory."""
        calls = self.recording.calls if self.recording is not None else []
        buffers = {v.buffer for call in calls for v in call.views}
        ours = Counter(id(buffer.storage) for buffer in buffers)
        lone = empty((), float32)
        alone = sys.getrefcount(lone.storage)
        return [
            i
            for i, array in enumerate(self.inputs)
            if sys.getrefcount(array.storage) == alone + ours[id(array.storage)]
        ]

    # Replaying.

    def one_step(self, program: Program | DeviceProgram, args: Sequence[Any]) -> Any:
        """One step; what it copies in and out is listed once, and aimed anew each time."""
        given = [a.array.contiguous() for a in args if isinstance(a, Tensor)]
        if not isinstance(program, Program):
            results = program.one_step(self.inputs, given, self.outputs)
            return rebuilt(self.pattern, [Tensor(array) for array in results])
        made = [empty(array.shape, array.dtype) for array in self.outputs]
        if self.wires is None:
            self.wires = feeds_from(given, self.inputs), takes_into(self.outputs, made, False)
        feeds, takes = self.wires
        for i, array in enumerate(given):
            feeds.draw(i, array.place)
        bind(self.private, program, feeds, self.inputs, given)
        for i, array in enumerate(made):
            takes.aim(i, array.storage.data)
        _, error = program.replay(1, feeds, takes)
        if error is not None:
            raise error
        return rebuilt(self.pattern, [Tensor(array) for array in made])

    def steps(
        self, program: Program | DeviceProgram, tensors: Sequence[Tensor], first: int
    ) -> Steps:
        """A step for each row of the tensors from `first` on, their outputs stacked."""
        count = tensors[0].shape[0] - first
        given = [tensor[first:].array.contiguous() for tensor in tensors]
        if not isinstance(program, Program):
            results, whole, error = program.steps(self.inputs, given, self.outputs, count)
            return Steps(rebuilt(self.pattern, [Tensor(a) for a in results]), whole, error)
        made = [empty((count, *array.shape), array.dtype) for array in self.outputs]
        feeds, takes = feeds_from(given, self.inputs), takes_into(self.outputs, made, True)
        bind(self.private, program, feeds, self.inputs, given)
        done, error = program.replay(count, feeds, takes)
        if error is not None:
            for array, into in zip(self.outputs, made, strict=True):
                copy_into(into.view(array.shape, array.strides, done * array.numel), array)
            made = [Tensor(array)[: done + 1].array for array in made]
        return Steps(rebuilt(self.pattern, [Tensor(array) for array in made]), done, error)


def _program(
    calls: Sequence[Call], recorded: Recording, inputs: Sequence[Array]
) -> Program | DeviceProgram:
    """The program of a recorded step, where its memory lies."""
    devices = {v.buffer.device for call in calls for v in call.views} - {None}
    if not devices:
        return Program(calls, recorded, inputs)
    from gradcli.engine.program.on_device import DeviceProgram  # nobody else need wait for it

    return DeviceProgram(calls, recorded, inputs, devices.pop())


def tensors_in(args: Sequence[Any]) -> list[Tensor]:
    """The tensors among arguments."""
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
    return Tensor(own.view(own.shape, own.strides))  # an Array of its own: see _alone


def _check_places(tensors: Sequence[Tensor], inputs: Sequence[Array]) -> None:
    """Refuse a recorded write to an argument: that has given the program's copy other memory."""
    pairs = zip(tensors, inputs, strict=True)
    if any(tensor.array.storage is not mine.storage for tensor, mine in pairs):
        raise CaptureError("the step is not captured: it overwrites one of its arguments")


def _put_back(content: dict[Buffer, bytes]) -> None:
    for buffer, data in content.items():
        if buffer.storage is not None:
            overwrite(buffer.storage, data)
