"""Tensors as another element type, or on another device: to, float, double, int, long, bool."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.device.context import device_named
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.sample import index, sample, truth, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError


@function(
    shares="either",
    samples=[
        sample((3, 5), dtype=dtypes.float64),
        sample(index((2, 1, 4), 100), dtype=dtypes.float32),
        sample(truth((3,)), dtype=dtypes.float64),
        sample((), dtype=dtypes.float64),
    ],
    wrong=[
        wrong(sample((2,), dtype="gpu"), "to: no device 'gpu'"),
        wrong(sample((2,), dtype="float64"), "'float64' is written engine.float64"),
    ],
)
def to(input: Tensor, dtype: DType | Tensor | str) -> Tensor:
    """The tensor as another element type; itself where it has that type already.

    The name of a device ("cpu", "cuda", "cuda:1", "metal", "meta") is accepted too: the numbers
    move there.
    """
    if isinstance(dtype, str):
        if dtype in dtypes.DTYPES:
            raise DTypeError(f"to: the element type '{dtype}' is written engine.{dtype}")
        there = device_named(dtype) is input.array.storage.device
        return input if there else table.transfer(input, device=dtype)
    if isinstance(dtype, Tensor):
        dtype = dtype.dtype
    return input if input.dtype is dtype else cast(input, dtype=dtype)


@function(
    "float",
    shares="either",
    # Finite differences are too fine for float32: of floats there is only a sample without any.
    samples=[sample((0, 3)), sample(index((3, 5), 100)), sample(truth((2, 1, 4)))],
)
def to_float(input: Tensor) -> Tensor:
    """The tensor as float32."""
    return to(input, dtypes.float32)


@function(
    "bfloat16",
    shares="either",
    samples=[sample((0, 3)), sample(index((3, 5), 100)), sample(truth((2, 1)))],
)
def to_bfloat16(input: Tensor) -> Tensor:
    """The tensor as bfloat16, to nearest, ties to even."""
    return to(input, dtypes.bfloat16)


@function(
    "double",
    shares="either",
    samples=[sample((3, 5)), sample(index((2, 1, 4), 100)), sample(truth((0, 3)))],
)
def to_double(input: Tensor) -> Tensor:
    """The tensor as float64."""
    return to(input, dtypes.float64)


_TO_WHOLE = (sample((3, 5)), sample(index((2, 1, 4), 3)), sample(truth((4,))), sample((0, 3)))


@function("int", shares="either", samples=_TO_WHOLE, why="whole numbers have no slope")
def to_int(input: Tensor) -> Tensor:
    """The tensor as int32."""
    return to(input, dtypes.int32)


@function("long", shares="either", samples=_TO_WHOLE, why="whole numbers have no slope")
def to_long(input: Tensor) -> Tensor:
    """The tensor as int64."""
    return to(input, dtypes.int64)


@function("bool", shares="either", samples=_TO_WHOLE, why="the answer is true or false")
def to_bool(input: Tensor) -> Tensor:
    """False where 0, otherwise True."""
    return to(input, dtypes.bool_)


@op(
    double_backward="linear",
    method=False,
    samples=[sample(shape, dtype=dtypes.float64) for shape in ((3, 5), (4, 1), (), (0, 2))],
)
def cast(x: Array, *, dtype: DType) -> Array:
    """The same numbers as another element type."""
    return x.cast(dtype)


@cast.gradient
def cast_gradient(grad: Array, *, dtypes: tuple[DType]) -> Array:
    """Back to the old type; none where it was no float."""
    return grad.cast(dtypes[0])


@function(
    shares="either",
    samples=[
        sample((3, 5), (2,)),
        sample(index((2, 1), 9), (0,)),
        sample(truth((4,)), (3,)),
        sample((2, 3), truth(())),
    ],
)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the type of another tensor: input.to(other.dtype)."""
    return input.to(other.dtype)
