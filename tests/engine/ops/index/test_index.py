"""Picking rows, joining, ranges: what the declared samples of the ops do not show."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine.device import cpu
from gradcli.errors import OptionError, RangeError, ShapeError

KINDS = [engine.float32, engine.float64, engine.int32, engine.int64, engine.uint8, engine.bool_]


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_index_select_takes_any_element_type(dtype: engine.DType) -> None:
    x = engine.arange(12).reshape(6, 2).to(dtype)
    rows = x.tolist()
    picked = engine.index_select(x, 0, engine.tensor([5, 0, 5]))
    assert picked.dtype is dtype
    assert picked.tolist() == [rows[5], rows[0], rows[5]]


def test_a_bad_index_is_named_with_its_first_position() -> None:
    table = engine.zeros(50, 3)
    indices = engine.tensor([[1, 2, 3], [50, -1, 60]])
    with pytest.raises(RangeError, match=r"^embedding: index 50 at position 3 is outside 0\.\.49$"):
        engine.embedding(indices, table)
    with pytest.raises(RangeError, match=r"^index_select: index -1 at position 1 is outside"):
        engine.index_select(table, 0, engine.tensor([0, -1]))


def test_no_row_can_be_picked_from_none() -> None:
    with pytest.raises(RangeError, match="index 0 at position 0"):
        engine.embedding(engine.tensor([0]), engine.zeros(0, 3))
    assert engine.embedding(engine.zeros(0, dtype=engine.int64), engine.zeros(0, 3)).shape == (0, 3)


def test_the_row_of_the_padding_gets_no_gradient() -> None:
    for padding in (1, -2):
        weight = engine.ones(3, 2, requires_grad=True)
        indices = engine.tensor([1, 2, 1, 0, 2])
        engine.embedding(indices, weight, padding_idx=padding).sum().backward()
        assert weight.grad.tolist() == [[1, 1], [0, 0], [2, 2]]


def test_the_gradient_of_many_copies_is_summed_in_double() -> None:
    n = 100_000
    weight = engine.zeros(1, 1, requires_grad=True)
    picked = engine.embedding(engine.zeros(n, dtype=engine.int64), weight)
    picked.backward(engine.full((n, 1), 0.1))
    exact = engine.tensor(0.1).item() * n
    assert weight.grad.item() == engine.tensor(exact).item()


def test_the_gradient_of_picking_does_not_depend_on_threads(isa: str) -> None:
    def gradient() -> bytes:
        indices = engine.randint(700, (5000,), generator=engine.Generator(1))
        weight = engine.zeros(700, 33, requires_grad=True)
        grad = engine.randn(5000, 33, generator=engine.Generator(2))
        engine.embedding(indices, weight).backward(grad)
        return bytes(weight.grad.memoryview())

    before = cpu.threads()
    found = []
    for threads in (1, 2, 3):
        cpu.set_threads(threads)
        found.append(gradient())
    cpu.set_threads(before)
    assert found[0] == found[1] == found[2]


def test_where_takes_numbers_and_hides_what_is_not_taken() -> None:
    x = engine.tensor([1.0, math.nan, 3.0], requires_grad=True)
    y = engine.where(x == x, x, 0.0)
    assert y.tolist() == [1, 0, 3]
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]
    assert engine.where(engine.tensor([True, False]), 1, 2).tolist() == [1, 2]


def test_masked_fill_keeps_the_element_type() -> None:
    x = engine.tensor([1.0, 2.0], dtype=engine.float64)
    filled = x.masked_fill(engine.tensor([False, True]), -math.inf)
    assert filled.dtype is engine.float64
    assert filled.tolist() == [1, -math.inf]


@pytest.mark.parametrize("count", range(1, 8))
def test_cat_keeps_the_order_and_gives_each_part_its_gradient(count: int) -> None:
    parts = [engine.full((2, k), float(k), requires_grad=True) for k in range(count)]
    whole = engine.cat(parts, dim=1)
    assert whole.tolist() == [[float(k) for k in range(count) for _ in range(k)]] * 2
    weights = engine.arange(whole.numel()).reshape(whole.shape).float()
    whole.backward(weights)
    starts = [sum(range(k)) for k in range(count)]
    for k, (part, start) in enumerate(zip(parts, starts, strict=True)):
        assert part.grad.tolist() == weights[:, start : start + k].tolist()


def test_cat_of_one_is_a_copy() -> None:
    x = engine.ones(2)
    y = engine.cat([x])
    y.fill_(5)
    assert x.tolist() == [1, 1]


def test_stack_makes_a_new_dimension() -> None:
    a, b = engine.tensor([1, 2]), engine.tensor([3, 4])
    assert engine.stack([a, b]).tolist() == [[1, 2], [3, 4]]
    assert engine.stack([a, b], dim=-1).tolist() == [[1, 3], [2, 4]]


def test_what_does_not_fit_side_by_side_is_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"^cat: shapes \(2, 3\) and \(3, 3\) differ outside dim 1"
    ):
        engine.cat([engine.zeros(2, 3), engine.zeros(3, 3)], dim=1)
    with pytest.raises(ShapeError, match=r"^cat: a tensor without dimensions"):
        engine.cat([engine.tensor(1.0), engine.tensor(2.0)])
    with pytest.raises(OptionError, match="at least one tensor"):
        engine.cat([])
    with pytest.raises(ShapeError, match=r"^stack: needs tensors of one shape"):
        engine.stack([engine.zeros(2), engine.zeros(3)])


def test_arange_counts_as_python_and_torch_do() -> None:
    for arguments in [(5,), (2, 9, 3), (9, 2, -3), (3, 3), (-4, 4)]:
        made = engine.arange(*arguments)
        assert made.dtype is engine.int64
        assert made.tolist() == list(range(*arguments))
    steps = engine.arange(0, 1, 0.1)
    assert steps.dtype is engine.float32
    assert steps.tolist() == [engine.tensor(k * 0.1).item() for k in range(10)]
    assert engine.arange(3, dtype=engine.float64).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(OptionError, match="does not lead from 3 to 1"):
        engine.arange(3, 1)


def test_eye_has_ones_on_its_diagonal() -> None:
    for rows, columns in [(3, 3), (2, 4), (4, 2), (0, 2), (1, 1)]:
        wanted = [[1.0 if r == c else 0.0 for c in range(columns)] for r in range(rows)]
        assert engine.eye(rows, columns).tolist() == wanted
    assert engine.eye(2, dtype=engine.bool_).tolist() == [[True, False], [False, True]]
