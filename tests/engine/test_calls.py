"""The checked door: no call, however wrong, reaches memory that is not its own."""

from __future__ import annotations

import os
import random
import threading
import warnings
from typing import Any

import pytest

from gradcli.engine.device import cpu
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import ffi, lib

INT64_MAX = 2**63 - 1
SIZES = {0: 4, 1: 8, 2: 4, 3: 8, 4: 1, 5: 1}


def tensor(
    shape: list[int],
    *,
    strides: list[int] | None = None,
    dtype: int = 0,
    offset: int = 0,
    nbytes: int | None = None,
    ndim: int | None = None,
    storage: cpu.Storage | None = None,
) -> Any:
    count = 1
    plain = [0] * len(shape)
    for d in reversed(range(len(shape))):
        plain[d] = count
        count *= max(shape[d], 1)
    own = storage or cpu.allocate(max(count, 1) * SIZES.get(dtype, 8))
    made = ffi.new("gc_tensor *")
    made.data, made.nbytes = own.data, own.nbytes if nbytes is None else nbytes
    made.offset, made.dtype, made.ndim = offset, dtype, len(shape) if ndim is None else ndim
    made.shape, made.stride = shape, strides or plain
    KEEP.append(own)
    return made


KEEP: list[Any] = []  # descriptors are plain C and keep no memory alive


def status(kernel: int | str, *tensors: Any, sizes: list[int] | None = None) -> int:
    call = ffi.new("gc_call *")
    call.kernel = KERNELS[kernel] if isinstance(kernel, str) else kernel
    call.ntensors = len(tensors)
    for i, t in enumerate(tensors):
        call.tensors[i] = t[0]
    if sizes:
        call.sizes = sizes
    error = ffi.new("gc_error *")
    checked = lib.gc_check(call, error)
    ran = lib.gc_run(call, 1, error)
    assert ran == error.status
    assert checked in (lib.GC_OK, ran)
    return int(ran)


def test_a_good_call_runs() -> None:
    assert status("add", tensor([3, 4]), tensor([3, 4]), tensor([3, 4])) == lib.GC_OK


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ({"nbytes": 47}, "GC_BAD_BOUNDS"),
        ({"offset": 1}, "GC_BAD_BOUNDS"),
        ({"offset": -1}, "GC_BAD_BOUNDS"),
        ({"offset": INT64_MAX}, "GC_BAD_BOUNDS"),
        ({"strides": [5, 1]}, "GC_BAD_BOUNDS"),
        ({"strides": [-4, 1]}, "GC_BAD_BOUNDS"),
        ({"strides": [INT64_MAX, 1]}, "GC_BAD_BOUNDS"),
        ({"strides": [-INT64_MAX, INT64_MAX]}, "GC_BAD_BOUNDS"),
        ({"dtype": 7}, "GC_BAD_DTYPE"),
        ({"dtype": -1}, "GC_BAD_DTYPE"),
        ({"ndim": 9}, "GC_BAD_SHAPE"),
        ({"ndim": -1}, "GC_BAD_SHAPE"),
    ],
)
@pytest.mark.parametrize("slot", [0, 1, 2])
def test_a_tensor_that_leaves_its_memory_is_refused(
    bad: dict[str, Any], expected: str, slot: int
) -> None:
    tensors = [tensor([3, 4]) for _ in range(3)]
    tensors[slot] = tensor([3, 4], **bad)
    assert status("add", *tensors) == getattr(lib, expected)


def test_memory_that_is_not_aligned_is_refused() -> None:
    shifted = tensor([2])
    shifted.data = ffi.cast("char *", shifted.data) + 1
    shifted.nbytes = 16
    assert status("neg", shifted, tensor([2])) == lib.GC_BAD_BOUNDS
    assert status("neg", tensor([2]), shifted) == lib.GC_BAD_BOUNDS


def test_sizes_that_overflow_are_refused() -> None:
    huge = tensor([1, 1])
    huge.shape = [2**31, 2**33, 0, 0, 0, 0, 0, 0]
    huge.stride = [0, 0, 0, 0, 0, 0, 0, 0]
    assert status("neg", huge, huge) == lib.GC_BAD_BOUNDS
    negative = tensor([1, 1])
    negative.shape = [-3, 4, 0, 0, 0, 0, 0, 0]
    assert status("neg", negative, negative) == lib.GC_BAD_BOUNDS


@pytest.mark.parametrize("kernel", [-1, 10**6, -(2**31)])
def test_an_unknown_kernel_is_refused(kernel: int) -> None:
    assert status(kernel, tensor([2]), tensor([2])) == lib.GC_BAD_CALL


def test_a_wrong_number_of_tensors_is_refused() -> None:
    assert status("add", tensor([2]), tensor([2])) == lib.GC_BAD_CALL
    assert status("neg", tensor([2]), tensor([2]), tensor([2])) == lib.GC_BAD_CALL


def test_an_output_that_repeats_an_element_is_refused() -> None:
    out = tensor([3, 4], strides=[0, 1])
    assert status("add", tensor([3, 4]), tensor([3, 4]), out) == lib.GC_OVERLAP


def test_an_output_that_partly_covers_an_input_is_refused() -> None:
    shared = cpu.allocate(64)
    first = tensor([8], storage=shared)
    shifted = tensor([8], storage=shared, offset=1)
    assert status("neg", first, shifted) == lib.GC_OVERLAP
    assert status("neg", first, first) == lib.GC_OK


def test_an_output_is_its_input_only_when_it_begins_at_the_same_byte() -> None:
    first, second = tensor([8]), tensor([7])
    first.shape = [7, 0, 0, 0, 0, 0, 0, 0]
    second.data = ffi.cast("char *", first.data) + 4
    first.nbytes = second.nbytes = 28
    assert status("neg", first, first) == lib.GC_OK
    assert status("neg", first, second) == lib.GC_OVERLAP


def test_a_missing_build_is_refused() -> None:
    assert status("exp", tensor([2], dtype=3), tensor([2], dtype=3)) == lib.GC_BAD_DTYPE


def random_tensor(rng: random.Random) -> Any:
    shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 1, 2, 3, 3, 4, 5)))]
    dtype = rng.choice((0, 0, 0, 0, 1, 2, 3, 3, 4, 5))
    strides = [rng.choice((-1, 0, 1, 2, 3, 6)) for _ in shape] if rng.random() < 0.2 else None
    made = tensor(shape, dtype=dtype, strides=strides)
    data = ffi.buffer(made.data, made.nbytes)
    if rng.random() < 0.5:
        data[:] = bytes(len(data))
    return made


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_random_calls_run_or_are_refused(kernel: str) -> None:
    """Every plan must refuse what its kernel cannot do; the sanitizers watch this test."""
    rng = random.Random(kernel)
    KEEP.clear()
    shapes: list[Any] = []
    for _ in range(400):
        call = ffi.new("gc_call *")
        call.kernel = KERNELS[kernel]
        call.ntensors = rng.choice((lib_arity(kernel), lib_arity(kernel), rng.randrange(9)))
        for i in range(call.ntensors):
            # Shapes recur, so that many calls pass the first checks and meet the later ones.
            if shapes and rng.random() < 0.6:
                call.tensors[i] = rng.choice(shapes)[0]
            else:
                shapes.append(random_tensor(rng))
                call.tensors[i] = shapes[-1][0]
        wild = (0, 0, 1, 1, 2, 3, -1, 7, INT64_MAX, -INT64_MAX)
        call.sizes = [rng.choice(wild) for _ in range(16)]
        call.options = [rng.choice((0.0, 1.0, 0.5, -1.0, float("nan"))) for _ in range(8)]
        error = ffi.new("gc_error *")
        assert lib.gc_run(call, 1, error) in range(lib.GC_ZERO + 1)


def lib_arity(kernel: str) -> int:
    """How many tensors a kernel takes, found by asking."""
    for n in range(9):
        call = ffi.new("gc_call *")
        call.kernel, call.ntensors = KERNELS[kernel], n
        error = ffi.new("gc_error *")
        if lib.gc_check(call, error) != lib.GC_BAD_CALL:
            return n
    raise AssertionError(kernel)


def test_calls_from_several_threads_do_not_disturb_each_other() -> None:
    from gradcli import engine

    wrong: list[int] = []

    def work(seed: int) -> None:
        x = engine.full((100_000,), seed)
        for _ in range(50):
            if (x + x)[99_999].item() != 2 * seed:
                wrong.append(seed)

    crowd = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert wrong == []


def test_a_forked_child_computes_too() -> None:
    from gradcli import engine

    x = engine.ones(200_000)
    assert (x + x)[0].item() == 2
    with warnings.catch_warnings():
        # Python 3.12 warns of forks in a process with threads; that it works is what we test.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(0 if (x + x)[199_999].item() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_floating_point_environment_is_left_alone() -> None:
    from gradcli import engine

    tiny = engine.full((4,), 5e-324, dtype=engine.float64)
    assert (tiny + tiny)[0].item() == 1e-323
    assert 5e-324 * 2 == 1e-323
