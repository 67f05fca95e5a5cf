"""A program on a GPU: what the CPU does of a step, one block of numbers sent over, then one replay.

Calls that touch only the CPU's memory (step counts, learning rates, random states, the gathering of
samples that stay on the host) come first, as a program of their own, while the GPU is still at the
step before. What the GPU's calls read of that memory lies in one block, which is written anew
before each step, and in one of what is large; what never changes was sent once.

A function of Python (see outside.py) cuts the replay in two: it waits for the launches before it,
and finds its tensors on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gradcli.engine import outside
from gradcli.engine.array import Array, copy_into, empty, empty_beside
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.gpu.device import GPU, Memory, of_library, on_device, on_gpu
from gradcli.engine.device.gpu.driver import Address, Ready, Replayable
from gradcli.engine.device.gpu.launch import CallSpec, LaunchList
from gradcli.engine.device.kernels import ffi
from gradcli.engine.device.program import CallPlan
from gradcli.engine.dtype import DType
from gradcli.engine.graph import Leaf
from gradcli.engine.program import plan, schedule
from gradcli.engine.program.record import Buffer, Call, Recording, View
from gradcli.engine.program.replay import Program
from gradcli.errors import CaptureError, GradcliError

_ALIGN = 256
_LARGE = 1 << 16  # bytes that are not packed with others to be sent
Moves = Sequence[tuple[Array, Array]]  # (to, from), whole arrays


class _Piece:
    """A piece of the CPU's memory as the GPU sees it."""

    def __init__(self, storage: Storage, low: int, high: int, dtype: DType) -> None:
        self.storage = storage
        self.low, self.high, self.dtype = low, high, dtype
        self.at = 0  # in its block
        self.version = -1

    @property
    def nbytes(self) -> int:
        """On the GPU."""
        return (self.high - self.low) * on_device(self.dtype).size

    def bytes(self) -> bytes | memoryview:
        """What lies there now."""
        return on_gpu(self.storage, self.low, self.high, self.dtype)


class _DeviceBlock:
    """Pieces one behind the other in the GPU's memory."""

    memory: Memory

    def __init__(self) -> None:
        self.pieces: list[_Piece] = []
        self.nbytes = 0

    def add(self, piece: _Piece) -> None:
        """Another one at its end."""
        piece.at = self.nbytes
        self.pieces.append(piece)
        self.nbytes += -(-piece.nbytes // _ALIGN) * _ALIGN


class DeviceProgram:
    """A recorded step on a GPU, replayed with one launch.

    Attributes:
        calls: what the GPU does, after all passes.
        arena_bytes: memory of its intermediates there.
        waves: how many calls wait for one before them.
    """

    def __init__(
        self, calls: Sequence[Call], recording: Recording, inputs: Sequence[Array], gpu: GPU
    ) -> None:
        self.gpu = gpu
        _refuse_others(calls, inputs, gpu)
        _refuse_shared(calls, gpu)
        gpu.trim()  # the eager step's memory, before the program takes its own
        alone = [call for call in calls if not _is_of_gpu(call)]
        self.calls = [call for call in calls if _is_of_gpu(call)]
        _keep_what_is_sent(self.calls)
        self._host = Program(alone, recording)
        self._inputs = {id(array.storage) for array in inputs}
        written_on_host = {v.buffer for call in alone for v in call.outputs}
        owned = {id(source.varying().storage) for _, source in recording.varying.values()}
        self._changing, self._large, self._constant = _DeviceBlock(), _DeviceBlock(), _DeviceBlock()
        self._pieces_of = self._pieces(written_on_host, owned)
        for block in (self._changing, self._large, self._constant):
            block.memory = gpu.allocate(block.nbytes)
        if self._large.pieces:
            gpu.stage(self._large.nbytes)
        self._waited = 0.0
        self._plans = [
            LaunchList() if call.function else gpu.plan_call(self._shapes(call))
            for call in self.calls
        ]
        self.plans = [CallPlan(1, (1,), p.scratch, 0, 1) for p in self._plans]
        parts = schedule.waves(self.calls, self.plans)
        self.waves = parts[-1].wave + 1 if parts else 0
        self.layout = plan.layout(self.calls, self.plans, parts)
        self.arena_bytes = self.layout.nbytes
        self._arena = gpu.allocate(self.arena_bytes)
        with gpu.lock:
            self._send()
            self._sections = self._record([part.call for part in parts])
        outputs = (v.buffer.storage for call in self.calls for v in call.outputs)
        self._outputs = list({id(s): s for s in outputs if s is not None}.values())

    # -- what is made ready once ---------------------------------------------------------------

    @property
    def grads(self) -> Mapping[Leaf, Array | None]:
        """Where a replay leaves the gradient of each leaf that gets one: memory of its own."""
        return self._host.grads

    @property
    def sampling_seconds(self) -> float:
        """For how long the gathering of samples on the CPU kept the steps from going on."""
        return self._waited

    def _pieces(
        self, written_on_host: set[Buffer], owned: set[int]
    ) -> dict[Buffer, tuple[_DeviceBlock, _Piece]]:
        views: dict[Buffer, list[View]] = {}
        for call in _kernel_calls(self.calls):
            for view in call.views:
                if not _there(view):
                    views.setdefault(view.buffer, []).append(view)
        pieces = {}
        for buffer, uses in views.items():
            storage = buffer.storage
            assert storage is not None, "what is sent has been kept"
            size = uses[0].dtype.size
            low = min(view.extent[0] for view in uses) // size
            high = max(view.extent[1] for view in uses) // size
            piece = _Piece(storage, low, high, uses[0].dtype)
            block = self._constant
            if buffer in written_on_host or id(storage) in owned or id(storage) in self._inputs:
                block = self._changing if piece.nbytes < _LARGE else self._large
            block.add(piece)
            pieces[buffer] = block, piece
        return pieces

    def _shapes(self, call: Call) -> CallSpec:
        views = [
            View(v.buffer, v.offset, v.shape, v.strides, on_device(v.dtype)) for v in call.views
        ]
        return CallSpec(call.kernel, views, call.sizes, call.options)

    def _address(self, view: View) -> Address:
        storage = view.buffer.storage
        if view.buffer in self._pieces_of:
            block, piece = self._pieces_of[view.buffer]
            at = piece.at + (view.offset - piece.low) * on_device(view.dtype).size
            return Address(block.memory.handle, at)
        offset = view.offset * on_device(view.dtype).size
        if storage is None:
            return Address(self._arena.handle, self.layout.buffers[view.buffer] + offset)
        assert isinstance(storage, Memory)
        return Address(storage.handle, offset)

    def _ready(self, number: int) -> list[Ready]:
        call, plan = self.calls[number], self._plans[number]
        addresses = [self._address(view) for view in call.views]
        scratch = Address(self._arena.handle, self.layout.scratch.get(number, 0))
        return [self.gpu.ready(call.kernel, launch, addresses, scratch) for launch in plan.launches]

    def _record(self, order: Sequence[int]) -> list[tuple[Replayable, Call | None]]:
        """What is queued with one launch, and the call of a function behind it, if there is one."""
        sections: list[tuple[Replayable, Call | None]] = []
        ready: list[Ready] = []
        for number in order:
            call = self.calls[number]
            if call.function is None:
                ready += self._ready(number)
            elif call.queues:
                ready.append(of_library(call.name, call.function))
            else:
                sections.append((self.gpu.driver.record(ready), call))
                ready = []
        return [*sections, (self.gpu.driver.record(ready), None)]

    # -- what each step does -------------------------------------------------------------------

    def _send(self) -> None:
        """The numbers that change, in one block; and constants that somebody has changed."""
        if self._changing.pieces:
            data = bytearray(self._changing.nbytes)
            for piece in self._changing.pieces:
                data[piece.at : piece.at + piece.nbytes] = piece.bytes()
            self.gpu.write(self._changing.memory, 0, bytes(data))
        for piece in self._large.pieces:
            self.gpu.write(self._large.memory, piece.at, piece.bytes())
        for piece in self._constant.pieces:
            if piece.version != piece.storage.version:
                piece.version = piece.storage.version
                self.gpu.write(self._constant.memory, piece.at, piece.bytes())

    def prove(self) -> None:
        """One step on the numbers that the recorded step found, functions among them."""
        with self.gpu.lock:
            self._host.prove()
            self._send()
            self._queue(self._host.recording.results)
            self._wait()

    def _queue(self, results: Iterable[Callable[[], None]] = ()) -> None:
        """The launches, and the functions between them; or what puts their results there."""
        rest = iter(results)
        for recorded, call in self._sections:
            recorded.replay()
            if call is not None and call.function is not None:
                self._wait()
                put_results = next(rest, None)
                if put_results is None:
                    outside.run(call.function, *map(_arrays, (call.inputs, call.outputs)))
                else:
                    put_results()

    def _wait(self) -> None:
        """Until all that is queued has run; raises what kernels have refused."""
        self.gpu.driver.synchronize()
        self.gpu.report.check()

    def replay(self, copies_in: Moves, copies_out: Moves) -> GradcliError | None:
        """One step, queued; what ended it: the CPU's part of it, or a function."""
        for own, source in copies_in:
            self._move(own, source)
        error = self._compute_on_host()
        if error is not None:
            return error
        self._send()
        for storage in self._outputs:
            storage.version += 1
        try:
            self._queue()
        except GradcliError as refused:
            error = refused
        for into, own in copies_out:
            self._move(into, own)
        return error

    def _compute_on_host(self) -> GradcliError | None:
        """The CPU's part of a step, while the GPU is at the step before.

        Where it is done with that before the samples are there, it has waited for them.
        """
        driver, before = self.gpu.driver, self._host.sampling_seconds
        if self._large.pieces:
            driver.at_work()  # from now on, if it was not
        _, error = self._host.replay(1)
        seconds = self._host.sampling_seconds - before
        if seconds and not driver.at_work():
            self._waited += seconds
        return error

    def _move(self, to: Array, source: Array) -> None:
        """Copy bytes between arrays: both are in order, and on one device or the CPU."""
        nbytes = source.numel * on_device(source.dtype).size
        if isinstance(to.storage, Memory) and isinstance(source.storage, Memory):
            if nbytes:
                self.gpu.driver.copy(_at(to.storage, to), _at(source.storage, source), nbytes)
        elif to.storage.device is None and source.storage.device is None:
            ffi.memmove(to.pointer, source.pointer, source.numel * source.dtype.size)
        else:
            copy_into(to, source)

    def one_step(
        self, inputs: Sequence[Array], arguments: Sequence[Array], outputs: Sequence[Array]
    ) -> list[Array]:
        """One step; its results in memory of their own."""
        results = [empty_beside(array) for array in outputs]
        copies_in, copies_out = (
            zip(inputs, arguments, strict=True),
            zip(results, outputs, strict=True),
        )
        with self.gpu.lock:
            error = self.replay(list(copies_in), list(copies_out))
        if error is not None:
            raise error
        return results

    def steps(
        self,
        inputs: Sequence[Array],
        arguments: Sequence[Array],
        outputs: Sequence[Array],
        count: int,
    ) -> tuple[list[Array], int, GradcliError | None]:
        """A step for each row of what is given; results stacked, whole steps, and what ended them.

        What a kernel refused is seen once all of them have run, or before a function is called.
        """
        report = self.gpu.report
        results = [_rows_beside(array, count) for array in outputs]
        with self.gpu.lock:
            for i in range(count):
                own_rows = zip(inputs, arguments, strict=True)
                copies_in = [(own, _row(array, i, own)) for own, array in own_rows]
                pairs = zip(results, outputs, strict=True)
                copies_out = [(_row(array, i, out), out) for array, out in pairs]
                report.begin(i)
                error = self.replay(copies_in, copies_out)
                if error is not None:
                    whole = report.step if error.of_earlier_op else i
                    return [_rows(array, whole + 1) for array in results], whole, error
            self.gpu.driver.synchronize()
            error, step = report.take_error(), report.step
        if error is None:
            return results, count, None
        return [_rows(array, step + 1) for array in results], step, error


def _at(storage: Memory, array: Array) -> Address:
    return Address(storage.handle, array.offset * on_device(array.dtype).size)


def _there(view: View) -> bool:
    return view.buffer.device is not None


def _is_of_gpu(call: Call) -> bool:
    """Whether a call is ordered among the GPU's: earlier ones wait for it or it for them."""
    return call.function is not None or any(_there(view) for view in call.views)


def _kernel_calls(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.function is None]


def _arrays(views: Sequence[View]) -> list[Array]:
    """Memory that outlives the program as the engine sees it."""
    storages = [view.buffer.storage for view in views]
    return [
        Array(storage, view.offset, view.shape, view.strides, view.dtype)
        for view, storage in zip(views, storages, strict=True)
        if storage is not None
    ]


def _refuse_shared(calls: Sequence[Call], gpu: GPU) -> None:
    """The CPU's part of a step comes first: no function stands between two of its calls."""
    kernels = _kernel_calls(calls)
    buffers = {view.buffer for call in kernels for view in call.views if not _there(view)}
    for call in calls:
        if call.function is not None and any(view.buffer in buffers for view in call.views):
            raise CaptureError(
                f"capture: '{call.name}' and kernels use the same memory of the CPU in a step "
                f"of {gpu.name}; keep its tensors there: x.to('{gpu.name}')"
            )


def _refuse_others(calls: Sequence[Call], inputs: Sequence[Array], gpu: GPU) -> None:
    """A program is one device's: no two wait for each other."""
    devices = [view.buffer.device for call in calls for view in call.views]
    for device in [*devices, *(array.storage.device for array in inputs)]:
        if device not in (None, gpu):
            raise CaptureError(
                f"capture: the step uses {gpu.name} and {device.name}; capture one for each device"
            )


def _keep_what_is_sent(calls: Sequence[Call]) -> None:
    """Memory of the CPU that GPU calls read outlives the CPU's part of the step."""
    for call in _kernel_calls(calls):
        for view in call.outputs:
            if not _there(view):
                raise CaptureError(
                    f"capture: '{call.kernel}' would write from the GPU to the CPU's memory"
                )
        for view in call.inputs:
            if not _there(view) and view.buffer.storage is None:
                view.buffer.storage = cpu.allocate(view.buffer.nbytes)


def _rows_beside(array: Array, count: int) -> Array:
    """Fresh memory for so many arrays like this one."""
    with scope.on(array.storage.device):
        return empty((count, *array.shape), array.dtype)


def _row(array: Array, i: int, like: Array) -> Array:
    """A row as an array of its own."""
    return array.view(like.shape, array.strides[1:], array.offset + i * array.strides[0])


def _rows(array: Array, count: int) -> Array:
    return array.view((count, *array.shape[1:]), array.strides)
