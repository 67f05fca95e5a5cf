"""Tensors that C makes: contiguous, in memory of their own, given back when a call is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import ffi, lib

ADD = KERNELS["add"]


def test_a_fresh_tensor_is_contiguous_and_given_back(allocated: Callable[[], int]) -> None:
    before = allocated()
    made = lib.gc_tensor_new(1, 3, (2, 0, 3))
    assert tuple(made.shape[0:3]) == (2, 0, 3)
    assert tuple(made.stride[0:3]) == (3, 3, 1)
    assert (made.ndim, made.dtype, made.nbytes, made.offset) == (3, 1, 0, 0)
    lib.gc_tensor_free(made)
    made = lib.gc_tensor_new(0, 2, (5, 7))
    assert allocated() == before + 4 * 35
    assert int(ffi.cast("intptr_t", made.data)) % 64 == 0
    assert tuple(made.stride[0:2]) == (7, 1)
    lib.gc_tensor_free(made)
    assert allocated() == before


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        (-1, (2,)),
        (7, (2,)),
        (0, (2,) * 9),
        (0, (-1, 2)),
        (1, (2**61,)),  # its bytes have no number
        (0, (2**32, 2**32)),
        (0, (2**62,)),  # no memory
    ],
)
def test_what_is_no_tensor_is_not_made(
    dtype: int, shape: tuple[int, ...], allocated: Callable[[], int]
) -> None:
    before = allocated()
    assert not lib.gc_tensor_new(dtype, len(shape), shape)
    assert allocated() == before


def test_a_refused_call_leaves_no_fresh_tensor(allocated: Callable[[], int]) -> None:
    inputs = [engine.ones(*shape).array.descriptor for shape in ((3, 4), (3, 5))]
    before = allocated()
    assert not lib.gc_run_new(ADD, inputs, 2, (), 0, (), 0, 0, 2, (3, 4))
    assert lib.gc_last_error().status == lib.GC_BAD_SHAPE
    for count in (-1, 8, 9):  # with the fresh one they are too many
        assert not lib.gc_run_new(ADD, inputs, count, (), 0, (), 0, 0, 2, (3, 4))
        assert lib.gc_last_error().status == lib.GC_BAD_CALL
    assert not lib.gc_run_new(len(KERNELS), inputs, 2, (), 0, (), 0, 0, 2, (3, 4))
    assert allocated() == before
