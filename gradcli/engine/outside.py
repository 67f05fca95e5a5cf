"""outside.call: a step calls a function of Python, also where it is captured.

A captured step runs in C; such a function runs between two parts of it. It is for what kernels
cannot do, such as an exchange with other processes. What lies on a device comes to the host for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from gradcli.engine import recording
from gradcli.engine.array import Array, writable
from gradcli.engine.device import meta, scope
from gradcli.engine.dtype import float64
from gradcli.engine.graph import no_grad
from gradcli.engine.tensor import Tensor
from gradcli.errors import DeviceError, DTypeError


def call(
    function: Callable[[], object], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    """Call `function()`, which reads the inputs, overwrites the outputs and touches nothing else.

    In a captured step all calls before it are finished then, and none behind it has begun. A step
    calls it once, whether it is captured or not: the proof of a program puts in the outputs what
    the function left there, so that of processes that exchange some may replay and others not. The
    function must be the same object (or method) in each step, and all tensors memory that
    outlives a step: what the step itself makes is copied into such a tensor first. No gradient
    goes through it. Of a tensor on a GPU the function uses `host(tensor)`: an input is copied there
    before, an output from there after. Tensors on `meta` only stand for memory: the function is not
    called.

    Raises:
        CaptureError: while a step is recorded, which then stays eager: a tensor is the step's own.
        OptionError: an output shares read-only memory.

    What the function raises ends the step: nothing behind the call has happened. In `steps` a
    GradcliError does so as a refused value does.
    """
    reads, writes = ([tensor.array for tensor in tensors] for tensors in (inputs, outputs))
    for array in writes:
        writable(array, "outside.call")
    recorder = recording.current()
    if recorder is not None:
        recorder.outside(function, reads, writes)
    if _imagined([*reads, *writes]):
        return
    run(function, reads, writes)
    for array in writes:
        array.storage.version += 1
    if recorder is not None:
        recorder.returned(writes)


def queue(
    function: Callable[[int], object], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    """As `call`, of tensors of one CUDA device: `function(stream)` queues work of a library there.

    A captured step calls it only while it is recorded: what it queues is part of the replay.
    """
    reads, writes = ([tensor.array for tensor in tensors] for tensors in (inputs, outputs))
    device = scope.find([*reads, *writes])
    if device is None or not device.name.startswith("cuda"):
        raise DeviceError("outside.queue: no tensor lies on a CUDA device")
    recorder = recording.current()
    if recorder is not None:
        recorder.outside(function, reads, writes, queues=True)
    queued: Any = device
    queued.queue(getattr(function, "__qualname__", repr(function)), function)
    for array in writes:
        array.storage.version += 1


def host(tensor: Tensor) -> Tensor:
    """Where the function of a `call` finds a tensor: the same elements on the host.

    On the CPU the tensor itself; of one on a GPU a tensor of the CPU, over memory that stays the
    same as long as the tensor's.
    """
    array = tensor.array
    device = array.storage.device
    if device is None or device is meta.DEVICE:
        return tensor
    if array.dtype is float64:
        raise DTypeError(f"outside.host: {device.name} has no float64; use x.float()")
    block = device.mirror(array.storage)
    return Tensor(Array(block, array.offset, array.shape, array.strides, array.dtype))


def run(function: Callable[[], object], inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call the function on memory of the host, whatever records and remembers."""
    for array in inputs:
        if array.storage.device is not None:
            array.storage.device.fetch(array)
    # To begin and to end a recording costs a tenth of a millisecond, also one that goes nowhere.
    nothing_records = recording.current() is None
    with nullcontext() if nothing_records else recording.to(None), no_grad():
        function()
    for array in outputs:
        if array.storage.device is not None:
            array.storage.device.send(array)


def _imagined(arrays: Sequence[Array]) -> bool:
    """Whether there is nothing to compute on: what Python makes here lies on meta, or has to."""
    return scope.current() is meta.DEVICE or any(a.storage.device is meta.DEVICE for a in arrays)
