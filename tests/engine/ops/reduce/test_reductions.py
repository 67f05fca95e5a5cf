"""Reductions beyond the small samples: long inputs cut into chunks, ties, NaN, emptiness, types."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import pytest
from short_ways import close_short_ways

from gradcli import engine
from gradcli.engine import array
from gradcli.errors import GradcliError, ShapeError

NAN = math.nan
LONG = 100_003  # several chunks, and no multiple of anything


def numbers(count: int, seed: int = 1) -> list[float]:
    """float32 numbers, so that nothing is rounded on the way in."""
    rng = random.Random(seed)
    drawn = [rng.gauss(3, 1) for _ in range(count)]
    return list(struct.unpack(f"{count}f", struct.pack(f"{count}f", *drawn)))


def test_a_long_float32_sum_is_exact_to_the_last_rounding() -> None:
    flat = numbers(LONG)
    x = engine.tensor(flat)
    assert x.sum().item() == pytest.approx(math.fsum(flat), rel=1e-7)
    assert x.mean().item() == pytest.approx(math.fsum(flat) / LONG, rel=1e-7)


@pytest.mark.parametrize("inner", [1, 3, 300])
def test_chunks_of_long_columns_are_put_together(inner: int) -> None:
    count = 30_000 // inner * 2
    x = engine.tensor(numbers(2 * count * inner)).reshape(2, count, inner)
    sums, variances = x.sum(1), x.var(dim=1)
    columns = x.permute(0, 2, 1).tolist()
    for o in range(2):
        for j in range(inner):
            column = columns[o][j]
            mean = math.fsum(column) / count
            squares = math.fsum((v - mean) ** 2 for v in column)
            assert sums[o, j].item() == pytest.approx(math.fsum(column), rel=1e-6)
            assert variances[o, j].item() == pytest.approx(squares / (count - 1), rel=1e-6)


def test_variance_of_numbers_far_from_zero_keeps_its_digits() -> None:
    x = engine.tensor([1e6 + i for i in range(5)])
    assert x.var().item() == 2.5


@pytest.mark.parametrize("at", [0, 17_000, LONG - 1])
def test_the_largest_is_found_in_any_chunk(at: int) -> None:
    flat = numbers(LONG)
    flat[at] = 1e3
    x = engine.tensor(flat)
    assert x.argmax().item() == at
    assert (-x).argmin().item() == at
    assert x.max().item() == 1e3


def test_of_equal_winners_in_several_chunks_the_first_is_chosen() -> None:
    x = engine.zeros((LONG,))
    assert x.argmax().item() == 0
    x[5] = 1.0
    x[90_000] = 1.0
    assert x.max(dim=0).indices.item() == 5


@pytest.mark.parametrize("at", [0, 20_000, LONG - 1])
def test_nan_wins_in_any_chunk(at: int) -> None:
    flat = numbers(LONG)
    flat[at] = NAN
    x = engine.tensor(flat)
    assert math.isnan(x.max().item())
    assert math.isnan(x.min().item())
    assert x.argmax().item() == at


def test_max_of_everything_shares_the_gradient_among_ties() -> None:
    x = engine.tensor([[1.0, 3.0, 3.0], [3.0, 2.0, 3.0]], requires_grad=True)
    x.max().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0.25, 0.25], [0.25, 0, 0.25]]


def test_max_along_a_dim_sends_the_gradient_to_the_first_tie() -> None:
    x = engine.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], requires_grad=True)
    x.max(dim=1).values.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_max_of_two_tensors_is_maximum() -> None:
    a, b = engine.tensor([1.0, 5.0]), engine.tensor([4.0, 2.0])
    assert engine.max(a, b).tolist() == [4, 5]
    assert a.min(b).tolist() == [1, 2]
    assert engine.min(a, other=b).tolist() == [1, 2]


def test_max_along_a_dim_has_named_fields() -> None:
    values, indices = engine.max(engine.tensor([[1.0, 5.0, 2.0]]), 1, keepdim=True)
    assert values.tolist() == [[5]]
    assert indices.tolist() == [[1]]
    assert indices.dtype is engine.int64


@pytest.mark.parametrize("dtype", [engine.int32, engine.int64, engine.uint8, engine.bool_])
def test_whole_numbers_and_bools_sum_to_int64(dtype: Any) -> None:
    x = engine.tensor([[1, 0, 1], [1, 1, 1]], dtype=dtype)
    total = x.sum()
    assert total.dtype is engine.int64
    assert total.item() == 5
    assert x.sum((0, 1)).item() == 5
    assert x.max().dtype is dtype
    assert x.argmin(dim=1).tolist() == [1, 0]


def test_a_sum_of_bytes_does_not_overflow() -> None:
    assert engine.full((1000,), 255, dtype=engine.uint8).sum().item() == 255_000


def test_sum_over_no_neighbours_takes_two_steps_to_the_same_result() -> None:
    x = engine.tensor(numbers(24)).reshape(2, 3, 4)
    assert x.sum((0, 2)).tolist() == pytest.approx(x.permute(1, 0, 2).sum((1, 2)).tolist())


def test_nothing_sums_to_0_and_has_no_mean() -> None:
    x = engine.zeros((3, 0))
    assert x.sum(1).tolist() == [0, 0, 0]
    assert all(math.isnan(v) for v in x.mean(1).tolist())
    assert all(math.isnan(v) for v in x.var(dim=1).tolist())
    assert x.sum(0).tolist() == []


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "amax", "amin"])
def test_nothing_has_no_largest_and_the_message_says_so(name: str) -> None:
    with pytest.raises(ShapeError, match=r"there is nothing to choose from in shape \(3, 0\)"):
        getattr(engine, name)(engine.zeros((3, 0)))


def test_std_of_equal_numbers_has_gradient_0() -> None:
    x = engine.tensor([2.0, 2.0, 2.0], requires_grad=True)
    x.std().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 0]


def test_a_gradient_of_a_cast_sum_comes_back_in_the_old_type() -> None:
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    x.sum(dtype=engine.float64).backward()
    assert x.grad is not None
    assert x.grad.dtype is engine.float32


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_row_of_minus_infinity_alone_is_nan_and_others_are_not(name: str) -> None:
    low = -math.inf
    y = getattr(engine, name)(engine.tensor([[low, low], [low, 2.0]]), 1).tolist()
    assert all(math.isnan(v) for v in y[0])
    assert y[1] == ([0, 1] if name == "softmax" else [low, 0])


def test_softmax_of_huge_logits_does_not_overflow() -> None:
    assert engine.tensor([1e30, 1e30, -1e30]).softmax(0).tolist() == [0.5, 0.5, 0]


def test_softmax_wants_its_dim() -> None:
    with pytest.raises(GradcliError, match="softmax: argument 'dim' is missing"):
        engine.softmax(engine.zeros((2, 3)))


def test_a_gradient_over_dimensions_apart_is_summed_where_it_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grad = engine.randn(2, 3, 4, 5, dtype=engine.float64)
    kernels: list[str] = []
    run = array.run

    def spy(kernel: str, *arrays: array.Array, **more: Any) -> None:
        kernels.append(kernel)
        run(kernel, *arrays, **more)

    close_short_ways(monkeypatch)
    monkeypatch.setattr(array, "run", spy)
    found = array.unbroadcast(grad.array, (1, 3, 1, 1))
    monkeypatch.undo()
    assert kernels == ["sum", "sum"]
    assert found.shape == (1, 3, 1, 1)
    assert found.reshape((3,)).tolist() == pytest.approx(grad.sum((0, 2, 3)).tolist(), rel=1e-14)


def test_squares_beyond_float32_do_not_spoil_a_norm() -> None:
    x = engine.tensor([[3e30, 4e30], [3e-30, 4e-30]])
    assert x.norm(dim=1).tolist() == engine.tensor([5e30, 5e-30]).tolist()
    assert x.t().norm(dim=0).tolist() == x.norm(dim=1).tolist()


@pytest.mark.parametrize(("shape", "dim"), [((2, 70001), 1), ((70001, 3), 0), ((3, 40, 5), (0, 2))])
def test_a_norm_is_the_root_of_the_sum_of_squares(shape: tuple[int, ...], dim: Any) -> None:
    x = engine.randn(*shape, dtype=engine.float64)
    wanted = (x * x).sum(dim).sqrt()
    assert engine.allclose(x.norm(dim=dim), wanted, rtol=1e-13, atol=0.0)
