"""Programs on the CPU: a list of calls as C structs, planned, compiled and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine.device import cpu
from gradcli.engine.device.cpu import ERRORS_OF_VALUES, Storage
from gradcli.engine.device.kernels import ffi, lib
from gradcli.engine.device.scope import DeviceArray
from gradcli.engine.dtype import DType, float32
from gradcli.engine.shape import Shape
from gradcli.errors import DeviceError, GradcliError


@dataclass(frozen=True)
class CallPlan:
    """What a kernel makes of a call: see gc_plan in call.h."""

    phases: int
    tasks: tuple[int, ...]
    shared_bytes: int
    worker_bytes: int
    work: int


def fields(
    address: int, nbytes: int, offset: int, shape: Shape, strides: Shape, dtype: DType
) -> tuple[Any, ...]:
    """A gc_tensor as a call list takes it: which elements of the block that begins there."""
    return cpu.pointer(address), nbytes, offset, dtype.code, len(shape), shape, strides


class CallList:
    """Calls as C structs; where their tensors lie may be said later."""

    def __init__(self, length: int) -> None:
        self.structs = ffi.new("gc_call[]", max(length, 1))
        self.kernels: list[str] = []

    def add(
        self, kernel: str, tensors: Sequence[object], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """The next call; `tensors` are what `fields` gives."""
        call = self.structs[len(self.kernels)]
        self.kernels.append(kernel)
        call.kernel = cpu.KERNELS[kernel]
        call.ntensors = len(tensors)
        for i, tensor in enumerate(tensors):
            call.tensors[i] = tensor
        if sizes:
            call.sizes = tuple(sizes)
        if options:
            call.options = tuple(options)

    def move(self, call: int, tensor: int, address: int) -> None:
        """Say where a tensor's memory begins."""
        self.structs[call].tensors[tensor].data = ffi.cast("void *", address)

    def plan(self) -> list[CallPlan]:
        """The plan of each call, after the same checks as before a run."""
        plan, error, plans = ffi.new("gc_plan *"), ffi.new("gc_error *"), []
        for i, kernel in enumerate(self.kernels):
            call = ffi.addressof(self.structs, i)
            if lib.gc_plan_call(call, plan, error):
                raise cpu.refusal(kernel, call.tensors, error)
            tasks = tuple(plan.tasks[0 : plan.phases])
            sizes = (int(plan.shared_bytes), int(plan.worker_bytes), int(plan.work))
            plans.append(CallPlan(int(plan.phases), tasks, *sizes))
        return plans


Transfer = tuple[Any, int, Any, int, int]
Growth = tuple[int, int, int, int, int]  # the fields of gc_growth, see call.h


def plan_call(
    kernel: str,
    arrays: Sequence[DeviceArray],
    sizes: Sequence[int],
    options: Sequence[float],
    *,
    wide: bool = False,
) -> CallPlan:
    """The plan of one call, wherever its tensors lie; refuses what the CPU refuses.

    With `wide` every byte counts twice, as for the same call in float32: the CPU knows some calls
    only in float32.
    """
    times = 2 if wide else 1
    tensors = [
        fields(
            times * address(a.storage),
            times * a.storage.nbytes,
            a.offset,
            a.shape,
            a.strides,
            float32 if wide else a.dtype,
        )
        for a in arrays
    ]
    calls = CallList(1)
    calls.add(kernel, tensors, sizes, options)
    return calls.plan()[0]


def address(storage: Storage) -> int:
    """Where a block begins; of another device's, a number that no other block has."""
    there: Any = storage
    return cpu.address(storage) if storage.device is None else int(there.address)


class Transfers:
    """What is copied before or after each step, as a C array; its ends can be moved.

    Each is (target, step, source, step, bytes): pointers, of which a step of 0 repeats one.
    """

    def __init__(self, transfers: Sequence[Transfer] = ()) -> None:
        self.structs = ffi.new("gc_transfer[]", transfers or 1)
        self.count = len(transfers)

    def and_also(self, transfers: Sequence[Transfer]) -> Transfers:
        """These, with their ends where they are now, and others behind them."""
        return Transfers([*self.structs[0 : self.count], *transfers])

    def in_place(self) -> Transfers:
        """The same without the copies: only what is read where it lies."""
        only = self.and_also([])
        for i in range(only.count):
            if only.structs[i].to:
                only.structs[i].nbytes = 0
        return only

    def set_target(self, number: int, target: object) -> None:
        """Move where bytes go to."""
        self.structs[number].to = target

    def set_source(self, number: int, source: object) -> None:
        """Move where bytes come from."""
        self.structs[number].source = source

    def alias(self, number: int) -> None:
        """Copy nothing: the program reads the source where it lies."""
        self.structs[number].to = ffi.NULL


class Compiled:
    """A program that C replays. Its memory must outlive it: the caller holds that."""

    def __init__(
        self,
        calls: CallList,
        parts: Sequence[tuple[int, int, int]],
        ports: Sequence[tuple[int, int, int]],
        scratch: Sequence[tuple[int, int]],
        timed: Sequence[int] = (),
    ) -> None:
        self._calls = calls
        error = ffi.new("gc_error *")
        blocks = ffi.new("gc_block[]", [(ffi.cast("void *", at), n) for at, n in scratch] or 1)
        parts_in_c = ffi.new("gc_part[]", list(parts) or 1)
        open_to = ffi.new("gc_port[]", list(ports) or 1)
        program = lib.gc_compile(
            calls.structs,
            len(calls.kernels),
            parts_in_c,
            len(parts),
            open_to,
            len(ports),
            blocks,
            error,
        )
        if program == ffi.NULL:
            raise self._refusal(error)
        self._program = ffi.gc(program, lib.gc_discard)
        for number in timed:
            lib.gc_time_call(self._program, number)
        self._error = error
        self._steps_done = ffi.new("int64_t *")
        self._growths: tuple[Any, int] = ffi.NULL, 0

    def grow(self, growths: Sequence[Growth]) -> None:
        """From now on these numbers of its calls depend on the position of a step."""
        self._growths = ffi.new("gc_growth[]", list(growths) or 1), len(growths)

    def move_to(self, position: int) -> None:
        """Let the replays that follow be of steps at this position."""
        if lib.gc_move_to(self._program, *self._growths, position, self._error):
            raise self._refusal(self._error)

    def replay(
        self, first: int, steps: int, inputs: Transfers, outputs: Transfers
    ) -> tuple[int, GradcliError | None]:
        """Run so many steps; gives how many ran to their end, and why the next one did not.

        A value that a kernel refused is such a reason; anything else is raised.
        """
        status = lib.gc_replay(
            self._program,
            first,
            steps,
            inputs.structs,
            inputs.count,
            outputs.structs,
            outputs.count,
            self._steps_done,
            self._error,
        )
        if not status:
            return steps, None
        refusal = self._refusal(self._error)
        if status in ERRORS_OF_VALUES and isinstance(refusal, GradcliError):
            return int(self._steps_done[0]), refusal
        raise refusal

    @property
    def timed(self) -> float:
        """Seconds for which the timed calls kept the steps from going on, all replays together."""
        return float(1e-9 * lib.gc_timed(self._program))

    def singly(self) -> list[Callable[[], None]]:
        """Each call as a function that runs it by itself."""
        return [
            self._alone(ffi.addressof(self._calls.structs, i))
            for i in range(len(self._calls.kernels))
        ]

    def _alone(self, call: object) -> Callable[[], None]:
        def run() -> None:
            if lib.gc_run(call, 1, self._error):
                raise self._refusal(self._error)

        return run

    def _refusal(self, error: Any) -> Exception:
        if error.status == lib.GC_BAD_PROGRAM:
            return AssertionError(f"a program wants {ffi.string(error.expected).decode()}")
        if error.status == lib.GC_NO_MEMORY:
            return DeviceError("no memory left for a program's scratch space")
        call = ffi.addressof(self._calls.structs, error.call)
        return cpu.refusal(self._calls.kernels[error.call], call.tensors, error)


def copy(storage: Storage) -> bytes:
    """What a block of memory holds now."""
    if storage.device is not None:
        return bytes(storage.device.read(storage, 0, storage.nbytes))
    return bytes(ffi.buffer(storage.data, storage.nbytes)) if storage.nbytes else b""


def overwrite(storage: Storage, data: bytes) -> None:
    """Put bytes back into a block of memory."""
    if storage.device is not None:
        storage.device.write(storage, 0, data)
    else:
        ffi.memmove(storage.data, data, storage.nbytes)
