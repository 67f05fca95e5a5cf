"""Writing over a tensor: what must fit, and whom it may not surprise."""

from __future__ import annotations

from sys import getrefcount

from gradcli.engine import recording
from gradcli.engine.array import copy_into
from gradcli.engine.dtype import promote
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.tensor import Tensor
from gradcli.errors import AutogradError, DTypeError, ShapeError


def overwrite(name: str, input: Tensor, result: Tensor) -> Tensor:
    """`result` written over the input, whose shape and kind of numbers must hold it."""
    if result.shape != input.shape:
        raise ShapeError(f"{name}: the result {result.shape} does not fit into {input.shape}")
    if promote(result.dtype, input.dtype).kind != input.dtype.kind:
        raise DTypeError(f"{name}: {result.dtype} does not fit into {input.dtype}")
    copy_into(input.array, result.array)
    return input


def refuse_view(name: str, x: Tensor) -> None:
    """Refuse a recorded write to a view: it would get new memory, and whom it shows would not."""
    if x.alias and (x.array.storage.owner is not None or _holders(x) != _holders(zeros(()))):
        raise AutogradError(
            f"{name}: no gradient passes through writing into a view of another tensor's memory; "
            "write to that tensor, to a clone() of the view, or under engine.no_grad()"
        )


def _holders(x: Tensor) -> tuple[int, int]:
    """How often the tensor's array and its memory are referred to, but by whoever records."""
    array = x.array
    recorder = recording.current()
    recorded = recorder is not None and recorder.keeps(array.storage)
    return getrefcount(array), getrefcount(array.storage) - recorded
