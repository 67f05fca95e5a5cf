"""One signature of a captured step: recorded twice, compared, compiled, and then replayed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.array import Array, copy_into, empty, empty_beside
from gradcli.engine.device import cpu
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.program import Transfers, copy, overwrite
from gradcli.engine.program.agree import difference
from gradcli.engine.program.passes import optimized
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.engine.program.replay import Program
from gradcli.engine.program.transfers import alias_large, input_transfers, output_transfers
from gradcli.engine.program.values import Pattern, leaves, rebuild, same
from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError, GradcliError
from gradcli.wording import quantity

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
        private: the inputs that nobody but the program's calls looks at after a step.
        loans: for each recording what its step was lent as memory of the inputs.
        refused: why this signature stays eager.
        transfers: what a single replay copies in and out.
    """

    inputs: list[Array]
    recording: Recording | None = None
    program: Program | DeviceProgram | None = None
    pattern: Pattern = None
    outputs: list[Array] = field(default_factory=list)
    private: list[int] = field(default_factory=list)
    loans: list[list[weakref.ref[Storage]]] = field(default_factory=list)
    refusal: str = ""
    transfers: tuple[Transfers, Transfers] | None = None
    recorder: ClassVar[type[Recording]] = Recording

    @classmethod
    def of(cls, args: Sequence[object]) -> Self:
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
        """The attribute of a module that has changed since; empty without one."""
        recording = self.recording
        return (
            str(recording.broken) if recording is not None and recording.broken is not None else ""
        )

    def outlived(self) -> bool:
        """Look again at what may have changed: true where tensors or modules were replaced."""
        if self.recording is None:
            return False
        self.recording.compare()
        return self.recording.outlived()

    def refuse(self, reason: str) -> None:
        """This signature stays eager."""
        self.refusal, self.recording, self.inputs = reason, None, []

    # Recording.

    def record(
        self, step: Callable[..., object], args: Sequence[object], passes: Sequence[str]
    ) -> tuple[Any, str]:
        """The step with its calls written down: what it gives, and why it cannot be captured.

        Raises CaptureError where the step has to be made again, eagerly.
        """
        before = self.pattern
        recorded = self._recorded(step, args)
        returned = rebuild(self.pattern, [Tensor(array.copy()) for array in self.outputs])
        reason = self._judge(before, recorded, args, passes)
        recorded.forget()
        return returned, reason and f"the step is not captured: {reason}"

    def _judge(
        self, pattern: Pattern, recorded: Recording, args: Sequence[object], passes: Sequence[str]
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

    def _recorded(self, step: Callable[..., object], args: Sequence[object]) -> Recording:
        lent = [_lent(array) for array in self.inputs]
        loans = iter(lent)
        copies = [_lend(a, next(loans)) if isinstance(a, Tensor) else a for a in args]
        recorded = self.recorder()
        try:
            with recording.to(recorded):
                self.pattern, results = leaves(step(*copies))
                self.outputs = [tensor.array.contiguous() for tensor in results]
            _check_memory(tensors_in(copies), lent)
        except CaptureError:
            recorded.undo()  # the step will be made again, eagerly
            raise
        self.loans.append(_handed_over(lent, self.inputs, recorded))
        del results, copies, loans, lent
        recorded.close()
        return recorded

    def _compile(self, recorded: Recording, passes: Sequence[str]) -> str:
        """Make the program, and let it prove itself: why it could not, or nothing."""
        buffers = {v.buffer for call in recorded.calls for v in call.outputs if v.buffer.persistent}
        cpu.trim()  # the eager step's memory, before the program takes its own
        try:
            program = self._program(recorded, passes)
        except CaptureError as error:
            return error.message
        after = {b: copy(b.storage) for b in buffers if b.storage is not None}
        _put_back({b: b.before for b in buffers if b.before is not None})
        program.prove()
        wrong = [b for b, data in after.items() if b.storage and copy(b.storage) != data]
        if wrong:
            _put_back(after)
            return (
                f"a replay gave other bits than the step itself in {quantity(len(wrong), 'tensor')}"
            )
        self.program = program
        every = enumerate(zip(*self.loans, strict=True))
        self.private = [i for i, loans in every if all(loan() is None for loan in loans)]
        return ""

    def _program(self, recorded: Recording, passes: Sequence[str]) -> Program | DeviceProgram:
        return program_of(optimized(recorded.calls, passes), recorded, self.inputs)

    # Replaying.

    def one_step(self, program: Program | DeviceProgram, args: Sequence[object]) -> Any:
        """One step; its list of copies is made once and gets new addresses each time."""
        arguments = [a.array.contiguous() for a in args if isinstance(a, Tensor)]
        if not isinstance(program, Program):
            results = program.one_step(self.inputs, arguments, self.outputs)
            return rebuild(self.pattern, [Tensor(array) for array in results])
        results = [empty(array.shape, array.dtype) for array in self.outputs]
        if self.transfers is None:
            self.transfers = (
                input_transfers(arguments, self.inputs),
                output_transfers(self.outputs, results, False),
            )
        copies_in, copies_out = self.transfers
        for i, array in enumerate(arguments):
            copies_in.set_source(i, array.pointer)
        alias_large(self.private, program, copies_in, self.inputs, arguments)
        for i, array in enumerate(results):
            copies_out.set_target(i, array.storage.data)
        _, error = program.replay(1, copies_in, copies_out)
        if error is not None:
            raise error
        return rebuild(self.pattern, [Tensor(array) for array in results])

    def steps(
        self, program: Program | DeviceProgram, tensors: Sequence[Tensor], first: int
    ) -> Steps:
        """A step for each row of the tensors from `first` on, their outputs stacked."""
        count = tensors[0].shape[0] - first
        arguments = [tensor[first:].array.contiguous() for tensor in tensors]
        if not isinstance(program, Program):
            results, whole, error = program.steps(self.inputs, arguments, self.outputs, count)
            return Steps(rebuild(self.pattern, [Tensor(a) for a in results]), whole, error)
        results = [empty((count, *array.shape), array.dtype) for array in self.outputs]
        copies_in, copies_out = (
            input_transfers(arguments, self.inputs),
            output_transfers(self.outputs, results, True),
        )
        alias_large(self.private, program, copies_in, self.inputs, arguments)
        count_done, error = program.replay(count, copies_in, copies_out)
        if error is not None:
            for array, into in zip(self.outputs, results, strict=True):
                copy_into(into.view(array.shape, array.strides, count_done * array.numel), array)
            results = [Tensor(array)[: count_done + 1].array for array in results]
        return Steps(rebuild(self.pattern, [Tensor(array) for array in results]), count_done, error)


def program_of(
    calls: Sequence[Call], recorded: Recording, inputs: Sequence[Array]
) -> Program | DeviceProgram:
    """The program of a recorded step, where its memory lies."""
    devices = {v.buffer.device for call in calls for v in call.views} - {None}
    if not devices:
        return Program(calls, recorded, inputs)
    from gradcli.engine.program.on_device import DeviceProgram  # nobody else need wait for it

    return DeviceProgram(calls, recorded, inputs, devices.pop())


def tensors_in(args: Sequence[object]) -> list[Tensor]:
    """The tensors among arguments."""
    return [a for a in args if isinstance(a, Tensor)]


def _overwritten(recorded: Recording, inputs: Sequence[Array]) -> bool:
    mine = {id(array.storage) for array in inputs}
    return any(id(v.buffer.storage) in mine for call in recorded.calls for v in call.outputs)


def _lent(own: Array) -> Array:
    """The program's memory for an argument, as a Storage that only the recorded step refers to.

    A GPU's memory has one Storage: nothing there is read where the caller has it.
    """
    if own.storage.device is not None:
        return own
    block = own.storage
    return Array(Storage(block.data, block.nbytes, block), 0, own.shape, own.strides, own.dtype)


def _handed_over(
    lent: Sequence[Array], inputs: Sequence[Array], recorded: Recording
) -> list[weakref.ref[Storage]]:
    """Make the recorded calls refer to the program's own Storage of each argument.

    Whoever still has an argument, or a view of one, then holds what was lent, and nobody else does.
    """
    for array, own in zip(lent, inputs, strict=True):
        recorded.replace(array.storage, own.storage)
    return [weakref.ref(array.storage) for array in lent]


def _lend(argument: Tensor, lent: Array) -> Tensor:
    """The program's copy of an argument."""
    if argument.requires_grad:
        raise CaptureError(
            "capture: an argument asks for a gradient; keep such a tensor outside the arguments"
        )
    copy_into(lent, argument.array)
    return Tensor(lent)


def _check_memory(tensors: Sequence[Tensor], lent: Sequence[Array]) -> None:
    """Refuse a recorded write to an argument: that has given the program's copy other memory."""
    pairs = zip(tensors, lent, strict=True)
    if any(tensor.array.storage is not mine.storage for tensor, mine in pairs):
        raise CaptureError("the step is not captured: it overwrites one of its arguments")


def _put_back(content: dict[Buffer, bytes]) -> None:
    for buffer, data in content.items():
        if buffer.storage is not None:
            overwrite(buffer.storage, data)
