"""Sorting: stable, NaN last, the same for every way the kernel takes."""

from __future__ import annotations

import math
import random

import pytest

from gradcli import engine
from gradcli.engine.device import cpu
from gradcli.errors import OptionError, RangeError, ShapeError

KINDS = [engine.float32, engine.float64, engine.int32, engine.int64, engine.uint8]
LENGTHS = [1, 2, 47, 48, 49, 63, 64, 65, 300, 5000]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_equal_elements_keep_their_order(dtype: engine.DType, descending: bool) -> None:
    rng = random.Random(str(dtype))
    low = 0 if dtype is engine.uint8 else -3
    for n in LENGTHS:
        numbers = [rng.randint(low, 6) * (1 if n % 2 else 30) for _ in range(n)]
        values, places = engine.tensor(numbers, dtype=dtype).sort(descending=descending)
        wanted = sorted(range(n), key=lambda i: -numbers[i] if descending else numbers[i])
        assert places.tolist() == wanted
        assert values.tolist() == [numbers[i] for i in wanted]


def test_the_ends_of_the_whole_numbers_are_in_order() -> None:
    for dtype, bits in ((engine.int32, 31), (engine.int64, 63)):
        numbers = [2**bits - 1, 0, -(2**bits), 1, -1]
        found = engine.tensor(numbers, dtype=dtype).sort()
        assert found.values.tolist() == sorted(numbers)


@pytest.mark.parametrize("n", [6, 100, 700])
@pytest.mark.parametrize("dtype", KINDS[:2], ids=str)
def test_nan_is_larger_than_infinity_and_minus_0_is_0(dtype: engine.DType, n: int) -> None:
    odd = [math.nan, -math.inf, 0.0, -0.0, math.inf, -math.nan]
    x = engine.tensor(odd + [0.0] * (n - 6), dtype=dtype)
    up, down = x.sort(), x.sort(descending=True)
    middle = [2, 3, *range(6, n)]
    assert up.indices.tolist() == [1, *middle, 4, 0, 5]
    assert down.indices.tolist() == [0, 5, 4, *middle, 1]
    assert all(math.isnan(v) for v in up.values[-2:].tolist())
    assert math.copysign(1, up.values[2].item()) == -1


def test_bools_are_in_order() -> None:
    found = engine.tensor([True, False, True, False]).sort()
    assert found.values.tolist() == [False, False, True, True]
    assert found.indices.tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("k", [0, 1, 5, 64, 65, 999, 1000])
def test_topk_is_the_begin_of_sort(k: int) -> None:
    x = engine.randint(0, 50, (3, 1000), generator=engine.Generator(1))
    for largest in (False, True):
        whole = x.sort(descending=largest)
        first = x.topk(k, largest=largest)
        assert first.values.tolist() == whole.values[:, :k].tolist()
        assert first.indices.tolist() == whole.indices[:, :k].tolist()


def test_threads_do_not_change_the_order() -> None:
    x = engine.randn(70, 900, generator=engine.Generator(2))
    before, found = cpu.threads(), []
    for threads in (1, 2, 3):
        cpu.set_threads(threads)
        found.append(bytes(x.sort(dim=0).indices.contiguous().memoryview()))
    cpu.set_threads(before)
    assert found[0] == found[1] == found[2]


def test_kthvalue_counts_from_1() -> None:
    x = engine.tensor([[3.0, 1.0, 2.0], [9.0, 8.0, 7.0]])
    found = engine.kthvalue(x, 2)
    assert found.values.tolist() == [2, 8]
    assert found.indices.tolist() == [2, 1]
    assert engine.kthvalue(x, 1, dim=0, keepdim=True).values.tolist() == [[3, 1, 2]]
    with pytest.raises(RangeError, match=r"^kthvalue: k 0 is outside 1\.\.3$"):
        engine.kthvalue(x, 0)


def test_a_sorted_tensor_can_be_captured() -> None:
    def step(x: engine.Tensor) -> engine.Tensor:
        return x.sort(descending=True).values + x.topk(6).values

    fast = engine.capture(step)
    for i in range(4):
        x = engine.randn(3, 6, generator=engine.Generator(i))
        assert fast(x).tolist() == step(x).tolist()
    assert fast.fallback_reason == ""


def test_places_in_sorted_rows() -> None:
    bounds = engine.tensor([1, 3, 5])
    assert engine.bucketize(engine.tensor([0, 1, 2, 5, 6]), bounds).tolist() == [0, 0, 1, 2, 3]
    right = engine.bucketize(engine.tensor([1.0, math.nan]), bounds, right=True)
    assert right.tolist() == [1, 3]
    assert engine.searchsorted(bounds, 4).item() == 2
    assert engine.searchsorted(bounds, input=engine.tensor([4])).item() == 2
    with pytest.raises(ShapeError, match=r"^bucketize: boundaries must be a vector"):
        engine.bucketize(engine.zeros(2), engine.zeros(2, 2))
    with pytest.raises(OptionError, match="side must be"):
        engine.searchsorted(bounds, 4, side="left", right=True)
