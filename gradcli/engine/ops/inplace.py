"""Ops that overwrite their first input; refused where a gradient would have to pass through."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

from gradcli.engine import graph, recording
from gradcli.engine.array import copy_into, run, writable
from gradcli.engine.composite import IN_PLACE, function
from gradcli.engine.dtype import promote
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.elementwise.arithmetic import add, div, mul, sub
from gradcli.engine.ops.elementwise.clamp import clamp
from gradcli.engine.ops.elementwise.family import matched
from gradcli.engine.sample import away_from, index, positive, sample, wrong
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import AutogradError, DTypeError, ShapeError

_TWO = [
    sample((3, 5), (3, 5)),
    sample((2, 1, 4), (4,)),
    sample((), other=2.5),
    sample((0, 3), (3,)),
]
_SCALED = [*_TWO, sample((2, 3), (2, 1), alpha=-0.5)]
_NARROW = sample((3,), (2, 3))


def overwrite(name: str, input: Tensor, result: Tensor) -> Tensor:
    """`result` written over the input, whose shape and kind of numbers must hold it."""
    if result.shape != input.shape:
        raise ShapeError(f"{name}: the result {result.shape} does not fit into {input.shape}")
    if promote(result.dtype, input.dtype).kind != input.dtype.kind:
        raise DTypeError(f"{name}: {result.dtype} does not fit into {input.dtype}")
    copy_into(input.array, result.array)
    return input


def _arithmetic(op: Op[Tensor], input: Tensor, other: Any) -> Tensor:
    """The result of `op` written over the input; at once, where no other memory is in the way."""
    name = f"{op.name}_"
    refuse_recorded(name, input, other)
    kept, operand = matched(name, input, other)
    if kept is not input or not input.is_floating_point() or not _apart(input, operand):
        return overwrite(name, input, op(input, other))
    writable(input.array, name)
    run(op.name, input.array, operand.array.expand(input.shape), input.array)
    input.array.storage.version += 1
    return input


def _apart(input: Tensor, operand: Tensor) -> bool:
    """Whether a kernel may read the operand while it overwrites the input."""
    fits = not operand.ndim or operand.shape == input.shape[-operand.ndim :]
    return fits and operand.array.storage is not input.array.storage


@function("add_", samples=_SCALED, wrong=[wrong(_NARROW, "does not fit into (3,)")], why=IN_PLACE)
def add_(input: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """The elements of input + alpha * other, written over the input."""
    return _arithmetic(add, input, other if alpha == 1 else mul(other, alpha))


@function("sub_", samples=_SCALED, wrong=[wrong(_NARROW, "does not fit into (3,)")], why=IN_PLACE)
def sub_(input: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """The elements of input - alpha * other, written over the input."""
    return _arithmetic(sub, input, other if alpha == 1 else mul(other, alpha))


@function("mul_", samples=_TWO, wrong=[wrong(_NARROW, "does not fit into (3,)")], why=IN_PLACE)
def mul_(input: Tensor, other: Operand) -> Tensor:
    """The elements of input * other, written over the input."""
    return _arithmetic(mul, input, other)


@function(
    "div_",
    samples=[
        sample((3, 5), positive((3, 5))),
        sample((2, 1, 4), away_from((4,))),
        sample((), other=2.5),
        sample((0, 3), (3,)),
    ],
    wrong=[wrong(sample(index((3,), 4), positive((3,))), "does not fit into gradcli.int64")],
    why=IN_PLACE,
)
def div_(input: Tensor, other: Operand) -> Tensor:
    """The elements of input / other, written over the input."""
    return _arithmetic(div, input, other)


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


def _operator(
    symbol: str, name: str, write: Callable[..., Tensor], plain: Callable[..., Tensor]
) -> None:
    """`x += y`: written over x; where gradients are recorded, a new tensor under the same name.

    What a leaf or a view would have to hand on to others is refused there.
    """

    def operator(input: Tensor, other: Any) -> Tensor:
        wanted = input.requires_grad or (isinstance(other, Tensor) and other.requires_grad)
        if not (wanted and graph.recording()):
            return write(input, other)
        refuse_view(symbol, input)
        if input.leaf is not None:
            refuse_recorded(symbol, input, other)
        result = plain(input, other)
        if result.shape != input.shape:
            raise ShapeError(f"{symbol}: the result {result.shape} does not fit {input.shape}")
        return result

    operator.__doc__ = f"The operator {symbol}."
    operator.__dict__["__wrapped__"] = plain  # it takes what the op takes
    function(f"__i{name}__", called=symbol)(operator)


_operator("+=", "add", add_, add)
_operator("-=", "sub", sub_, sub)
_operator("*=", "mul", mul_, mul)
_operator("/=", "truediv", div_, div)


@function(
    "clamp_",
    samples=[
        sample((3, 5), min=-0.5, max=0.5),
        sample((2, 1, 4), min=0.25),
        sample((), max=-0.25),
        sample((0, 3), min=0.0),
    ],
    why=IN_PLACE,
)
def clamp_(input: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """The input held between min and max, in place."""
    refuse_recorded("clamp_", input)
    return overwrite("clamp_", input, clamp(input, min=min, max=max))
