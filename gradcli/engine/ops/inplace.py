"""Ops that write their result over their first input.

`x.name_(...)` is `x.copy_(x.name(...))`: the memory is the same, its version is counted, and where
a gradient would have to pass through it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Literal

from gradcli.engine import graph
from gradcli.engine.argument import hints_of
from gradcli.engine.array import run, writable
from gradcli.engine.composite import FUNCTIONS, IN_PLACE, function
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op
from gradcli.engine.ops.elementwise.arithmetic import add, div, mul, sub
from gradcli.engine.ops.elementwise.clamp import Limit, clamp
from gradcli.engine.ops.elementwise.family import matched
from gradcli.engine.ops.index.index_add import index_copy
from gradcli.engine.ops.overwrite import overwrite, refuse_view
from gradcli.engine.sample import Sample, away_from, index, positive, sample, wrong
from gradcli.engine.shape import broadcast
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import ShapeError

SAME_SHAPE = [
    "cumprod",
    "cumsum",
    "index_add",
    "index_fill",
    "masked_fill",
    "masked_scatter",
    "scatter",
    "scatter_add",
    "scatter_reduce",
]


def _keeps_shape(sample: Sample) -> bool:
    """True where the result is as large as the first input."""
    first, *rest = (spec.shape for spec in sample.inputs)
    return all(broadcast(shape, first, "in place") == first for shape in rest)


def _samples_of(name: str) -> Sequence[Sample]:
    """The calls of the plain form whose result fits into the input."""
    plain = OPS[name]
    samples = (plain if isinstance(plain, Op) else FUNCTIONS[name]).samples
    same_type = [s for s in samples if "dtype" not in s.options]
    return same_type if name in SAME_SHAPE else [s for s in same_type if _keeps_shape(s)]


_TWO = [sample((2, 1, 4), (4,)), sample((), other=2.5)]
_NARROW = [wrong(sample((3,), (2, 3)), "does not fit into (3,)")]


def _arithmetic(op: Op[Tensor], input: Tensor, other: Any) -> Tensor:
    """The result of `op` written over the input; at once, where no other memory is in the way."""
    name = f"{op.name}_"
    refuse_recorded(name, input, other)
    target, operand = matched(name, input, other)
    if target is not input or not input.is_floating_point() or not _apart(input, operand):
        return overwrite(name, input, op(input, other))
    writable(input.array, name)
    run(op.name, input.array, operand.array.expand(input.shape), input.array)
    input.array.storage.version += 1
    return input


def _apart(input: Tensor, operand: Tensor) -> bool:
    """Whether a kernel may read the operand while it overwrites the input."""
    fits = not operand.ndim or operand.shape == input.shape[-operand.ndim :]
    return fits and operand.array.storage is not input.array.storage


@function("add_", samples=[*_samples_of("add"), *_TWO], wrong=_NARROW, why=IN_PLACE)
def add_(input: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """The elements of input + alpha * other, written over the input."""
    return _arithmetic(add, input, other if alpha == 1 else mul(other, alpha))


@function("sub_", samples=[*_samples_of("sub"), *_TWO], wrong=_NARROW, why=IN_PLACE)
def sub_(input: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """The elements of input - alpha * other, written over the input."""
    return _arithmetic(sub, input, other if alpha == 1 else mul(other, alpha))


@function("mul_", samples=[*_samples_of("mul"), *_TWO], wrong=_NARROW, why=IN_PLACE)
def mul_(input: Tensor, other: Operand) -> Tensor:
    """The elements of input * other, written over the input."""
    return _arithmetic(mul, input, other)


@function(
    "div_",
    samples=[
        *_samples_of("div"),
        sample((2, 1, 4), away_from((4,))),
        sample((), other=2.5),
        sample((2, 3), positive((3,)), rounding_mode="floor"),
    ],
    wrong=[wrong(sample(index((3,), 4), positive((3,))), "does not fit into gradcli.int64")],
    why=IN_PLACE,
)
def div_(
    input: Tensor, other: Operand, *, rounding_mode: Literal["trunc", "floor"] | None = None
) -> Tensor:
    """The elements of input / other, written over the input."""
    if rounding_mode is None:
        return _arithmetic(div, input, other)
    refuse_recorded("div_", input, other)
    return overwrite("div_", input, div(input, other, rounding_mode=rounding_mode))


def _operator(
    symbol: str, name: str, write: Callable[..., Tensor], plain: Callable[..., Tensor]
) -> None:
    """`x += y`: written over x; where gradients are recorded, a new tensor under the same name.

    What a leaf or a view would have to hand on to others is refused there.
    """

    def operator(input: Tensor, other: Any) -> Tensor:
        needs_gradient = input.requires_grad or (isinstance(other, Tensor) and other.requires_grad)
        if not (needs_gradient and graph.grad_enabled()):
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
    function(f"__i{name}__", label=symbol)(operator)


_operator("+=", "add", add_, add)
_operator("-=", "sub", sub_, sub)
_operator("*=", "mul", mul_, mul)
_operator("/=", "truediv", div_, div)


@function(
    "clamp_",
    samples=[*_samples_of("clip"), sample((), max=-0.25), sample((3, 5), min=-0.5, max=0.5)],
    why=IN_PLACE,
)
def clamp_(input: Tensor, min: Limit = None, max: Limit = None) -> Tensor:
    """The input held between min and max, in place."""
    refuse_recorded("clamp_", input, min, max)
    return overwrite("clamp_", input, clamp(input, min=min, max=max))


OF_ONE = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "clamp_max",
    "clamp_min",
    "clip",
    "cos",
    "cosh",
    "elu",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "leaky_relu",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "bitwise_not",
    "nan_to_num",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "tril",
    "triu",
    "trunc",
    "celu",
    "hardtanh",
    "selu",
    "threshold",
]
OF_TWO = [
    "atan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "eq",
    "floor_divide",
    "fmod",
    "ge",
    "gt",
    "hypot",
    "le",
    "lerp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "pow",
    "remainder",
    "true_divide",
    "addcdiv",
    "addcmul",
]
PRODUCTS = ["addmm", "baddbmm"]


def _enter(name: str, samples: Sequence[Sample]) -> None:
    plain = OPS[name]

    def write(input: Tensor, *args: Any, **keywords: Any) -> Tensor:
        refuse_recorded(f"{name}_", input, *args, *keywords.values())
        return overwrite(f"{name}_", input, plain(input, *args, **keywords))

    _declare_like(name, samples, write)


def _declare_like(name: str, samples: Sequence[Sample], write: Callable[..., Tensor]) -> None:
    """What writes the result of an op over its input takes what the op takes."""
    plain = OPS[name]
    hints = plain.hints if isinstance(plain, Op) else hints_of(plain)
    first = next(iter(signature(plain).parameters))
    write.__dict__["__wrapped__"] = plain  # it is called in the same way, but on a Tensor
    write.__dict__["hints"] = {**hints, first: Tensor}
    write.__doc__ = f"The result of `{name}`, written over the input."
    function(f"{name}_", samples=samples, why=IN_PLACE)(write)


def _index_copy_(input: Tensor, *args: Any, **keywords: Any) -> Tensor:
    refuse_recorded("index_copy_", input, *args, *keywords.values())
    if index_copy.over(input, *args, **keywords):
        return input
    return overwrite("index_copy_", input, index_copy(input, *args, **keywords))


_declare_like("index_copy", index_copy.samples, _index_copy_)
for _name in (*OF_ONE, *OF_TWO, *SAME_SHAPE):
    _enter(_name, _samples_of(_name))
for _name in PRODUCTS:
    _enter(_name, FUNCTIONS[_name].samples[:2])
