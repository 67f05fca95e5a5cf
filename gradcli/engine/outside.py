"""outside.call: a step calls a function of Python, also where it is captured.

A captured step runs in C; such a function runs between two parts of it. It is for what kernels
cannot do, such as an exchange with other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.engine import recording
from gradcli.engine.array import Array, writable
from gradcli.engine.device import meta, place
from gradcli.engine.graph import no_grad
from gradcli.engine.tensor import Tensor


def call(
    function: Callable[[], object], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    """Call `function()`, which reads the inputs, overwrites the outputs and touches nothing else.

    In a captured step all calls before it are finished then, and none behind it has begun. A step
    calls it once; the step that makes the program calls it once more, for the program's proof. So
    the function must be the same object (or method) in each step, and all tensors memory that
    outlives a step: what the step itself makes is copied into such a tensor first. No gradient
    goes through it. Tensors on `meta` only stand for memory: the function is not called.

    Raises:
        CaptureError: while a step is recorded, which then stays eager: a tensor is the step's own.
        OptionError: an output shares read-only memory.

    What the function raises ends the step: nothing behind the call has happened. In `steps` a
    GradcliError does so as a refused value does.
    """
    read, written = ([tensor.array for tensor in tensors] for tensors in (inputs, outputs))
    for array in written:
        writable(array, "outside.call")
    recorder = recording.current()
    if recorder is not None:
        recorder.outside(function, read, written)
    if _imagined([*read, *written]):
        return
    with recording.to(None), no_grad():
        function()
    for array in written:
        array.storage.version += 1


def _imagined(arrays: Sequence[Array]) -> bool:
    """Whether there is nothing to compute on: what Python makes here lies on meta, or has to."""
    return place.fresh() is meta.DEVICE or any(a.storage.device is meta.DEVICE for a in arrays)
