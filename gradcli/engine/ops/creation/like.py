"""Tensors with the shape or the type of another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import empty_beside
from gradcli.engine.composite import function
from gradcli.engine.device import scope
from gradcli.engine.device.context import device_named
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Number, Sizes
from gradcli.engine.ops.creation.casts import to
from gradcli.engine.ops.creation.creation import SHAPED, empty, full, ones, tensor, zeros
from gradcli.engine.sample import index, sample, truth
from gradcli.engine.tensor import Tensor

_LIKE = [sample((3, 5)), sample((2, 1, 4), dtype=dtypes.int64), sample(()), sample((0, 3))]


@function(
    method=False,
    samples=[
        sample((3, 5), fill_value=0.5),
        sample((2, 1, 4), fill_value=-3, dtype=dtypes.int32),
        sample((), fill_value=True),
    ],
    why=SHAPED,
)
def full_like(
    input: Tensor, fill_value: Number, *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """One value everywhere, in the shape and type of another tensor."""
    there = input.array.storage.device if device is None else device_named(device, "full_like")
    with scope.on(there):
        return full(input.shape, fill_value, dtype=dtype or input.dtype)


@function(method=False, samples=_LIKE, why=SHAPED)
def zeros_like(input: Tensor, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """0 everywhere, in the shape and type of another tensor."""
    return full_like(input, 0, dtype=dtype, device=device)


@function(method=False, samples=_LIKE, why=SHAPED)
def ones_like(input: Tensor, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """1 everywhere, in the shape and type of another tensor."""
    return full_like(input, 1, dtype=dtype, device=device)


@function(method=False, samples=_LIKE, why=SHAPED)
def empty_like(input: Tensor, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Undefined values in the shape and type of another tensor."""
    if device is None:
        return Tensor(empty_beside(input.array, dtype))
    return empty(input.shape, dtype=dtype or input.dtype, device=device)


TYPED = "it takes no more than the type of its input"
_NEW = [
    sample((2,), size=(3, 5)),
    sample(index((1,), 3), size=(2, 1, 4)),
    sample((0,), size=((),), dtype=dtypes.int32),
    sample((2,), size=(0, 3)),
]


def _declare_new(make: Callable[..., Tensor], doc: str) -> None:
    def new(
        input: Tensor,
        *size: Sizes,
        dtype: DType | None = None,
        device: str | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        element_type = dtype or input.dtype
        return make(*size, dtype=element_type, device=device, requires_grad=requires_grad)

    new.__doc__ = f"{doc}, in the type of another tensor."
    function(f"new_{make.__name__}", samples=_NEW, why=TYPED)(new)


_declare_new(zeros, "0 everywhere")
_declare_new(ones, "1 everywhere")
_declare_new(empty, "Undefined values")


@function(
    samples=[
        sample((2,), size=(3, 5), fill_value=0.5),
        sample(truth((1,)), size=(2, 1), fill_value=1),
        sample((0,), size=(), fill_value=-2, dtype=dtypes.int64),
        sample((2,), size=(0, 3), fill_value=1.5),
    ],
    why=TYPED,
)
def new_full(
    input: Tensor,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value everywhere, in the type of another tensor."""
    return full(
        size, fill_value, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad
    )


@function(
    samples=[
        sample((2,), data=[[1, 2, 3], [4, 5, 6]]),
        sample(index((1,), 3), data=[7]),
        sample((0,), data=2.5),
        sample(truth((2,)), data=[], dtype=dtypes.int64),
    ],
    why=TYPED,
)
def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor from data, in the type and on the device of another tensor."""
    new = to(tensor(data, dtype=dtype or input.dtype), device or input.device)
    return new.requires_grad_(requires_grad)
