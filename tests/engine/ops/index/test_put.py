"""Rows replaced in place, and few numbers added to many: against the same written in Python."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.errors import DTypeError, OptionError, RangeError

KINDS = [engine.float32, engine.float64, engine.int32, engine.int64, engine.uint8, engine.bool_]


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_index_copy_writes_rows_at_once(dtype: engine.DType, isa: str) -> None:
    for shape, dim, count in [((70, 300), 0, 90), ((3, 41, 500), 1, 7), ((5, 9), -1, 20)]:
        x = (engine.rand(shape, generator=engine.Generator(1)) * 9).to(dtype)
        wide = [*shape]
        wide[dim] = count
        source = (engine.rand(wide, generator=engine.Generator(2)) * 9).to(dtype)
        index = engine.randint(shape[dim], (count,), generator=engine.Generator(3))
        wanted = x.clone()
        for j, row in enumerate(index.tolist()):
            wanted.select(dim, row).copy_(source.select(dim, j))
        assert x.index_copy(dim, index, source).tolist() == wanted.tolist()
        before = x.array.storage.version
        assert x.index_copy_(dim, index, source) is x
        assert x.array.storage.version > before
        assert x.tolist() == wanted.tolist()


def test_index_copy_takes_views_and_its_own_rows() -> None:
    x = engine.arange(24).reshape(4, 6).float()
    wanted = x.tolist()
    index = engine.tensor([2, 0], dtype=engine.int32)
    x.t()[1:4].t().index_copy_(0, index, engine.full((2, 3), -1.0))
    for row in (2, 0):
        wanted[row][1:4] = [-1.0] * 3
    assert x.tolist() == wanted
    x.index_copy_(0, engine.tensor([0, 1]), x[2:])
    assert x.tolist() == [*wanted[2:], *wanted[2:]]
    x.index_copy_(0, engine.tensor([3, 1]), engine.arange(12).reshape(6, 2).float().t())
    assert x.tolist()[3] == [0, 2, 4, 6, 8, 10]
    assert x.tolist()[1] == [1, 3, 5, 7, 9, 11]


def test_a_bad_index_leaves_the_input_as_it_was() -> None:
    x = engine.zeros(600, 300)
    index = engine.arange(600)
    index[500] = 600
    with pytest.raises(RangeError, match=r"^index_copy_: index 600 at position 500 is outside"):
        x.index_copy_(0, index, engine.ones(600, 300))
    assert x.sum().item() == 0
    with pytest.raises(RangeError, match=r"^setitem: index 9 at position 1 is outside"):
        x[engine.tensor([0, 9]), :][engine.tensor([0, 9])] = 1.0


def test_index_copy_in_place_refuses_what_does_not_fit() -> None:
    x = engine.zeros(3, 2)
    with pytest.raises(DTypeError, match=r"^index_copy_: source is"):
        x.index_copy_(0, engine.tensor([0]), engine.ones(1, 2, dtype=engine.int64))
    read_only = engine.frombuffer(bytes(24), dtype=engine.float32).reshape(3, 2)
    with pytest.raises(OptionError, match="read-only memory"):
        read_only.index_copy_(0, engine.tensor([0]), engine.ones(1, 2))
    assert x.index_copy_(0, engine.zeros(0, dtype=engine.int64), engine.ones(0, 2)) is x
    assert x.tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.int32], ids=str)
def test_few_numbers_are_added_as_many_are(dtype: engine.DType, isa: str) -> None:
    for n, m in [(8, 1), (801, 100), (100_000, 12_500), (4000, 0)]:
        x = (engine.rand(n, generator=engine.Generator(1)) * 1e4).to(dtype)
        index = engine.randint(max(1, m // 3), (m,), generator=engine.Generator(2)) * (n // (m + 1))
        source = (engine.rand(m, generator=engine.Generator(3)) * 1e4).to(dtype)
        # So many more places that are never named, and the sums are carried for all.
        short = index // (n // (m + 1))
        dense = x[:: n // (m + 1)][: max(1, m // 3)].clone()
        there = dense.scatter_add(0, short, source)
        result = x.scatter_add(0, index, source)
        assert result[:: n // (m + 1)][: max(1, m // 3)].tolist() == there.tolist()
        rest = engine.ones(n, dtype=engine.bool_)
        rest[index] = False
        assert result[rest].tolist() == x[rest].tolist()


def test_what_few_numbers_add_up_to_is_carried_in_double() -> None:
    x = engine.zeros(10_000)
    total = x.scatter_add(0, engine.full((1000,), 9_999), engine.full((1000,), 0.1))
    assert total[9_999].item() == engine.tensor(engine.tensor(0.1).item() * 1000).item()
    special = x.scatter_add(0, engine.tensor([5, 6, 6]), engine.tensor([math.nan, math.inf, 1.0]))
    assert math.isnan(special[5].item())
    assert special[6].item() == math.inf
    assert special[7:].abs().sum().item() == 0


def test_a_bad_index_among_few_is_named() -> None:
    x = engine.zeros(2, 1000)
    index = engine.tensor([[1, 2], [3, 1000]])
    with pytest.raises(RangeError, match=r"^scatter_add: index 1000 at position 3 is outside"):
        x.scatter_add(1, index, engine.ones(2, 2))
