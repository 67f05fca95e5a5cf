"""Gradients of parts: added along the tree, over all ranks once, with the bits of one rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rank_threads import Network, on_ranks

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.distributed import ALONE, Group, Sum
from gradcli.errors import OptionError
from gradcli.train.part_gradients import PartGradients

SHAPES = ((3, 5), (4,), (1,))
LAYOUTS = [(2, 1), (3, 1), (4, 1), (2, 2), (2, 3), (3, 2), (4, 2), (3, 4)]


def gradients_of(part: int) -> list[Tensor]:
    generator = engine.Generator(part, purpose="gradients")
    return [engine.rand(shape, generator=generator) - 0.5 for shape in SHAPES]


def summed(group: Group, batches: int, updates: int = 1) -> list[Any]:
    """The gradients that are left on a rank after some updates, as numbers; and the losses."""
    leaves = [engine.zeros(shape).requires_grad_() for shape in SHAPES]
    parts = PartGradients(leaves, group.size * batches, group)
    losses: list[float] = []
    for update in range(updates):
        for part in range(group.rank * batches, (group.rank + 1) * batches):
            parts.begin()
            number = update * group.size * batches + part
            for leaf, gradient in zip(leaves, gradients_of(number), strict=True):
                (leaf * gradient).sum().backward()
            losses = parts.take(float(part))
    return [[leaf.grad.tolist() for leaf in leaves if leaf.grad is not None], losses]


def along_the_tree(low: int, high: int) -> list[Tensor]:
    """The sum by the rule itself: the first half has the largest power of two below the number."""
    if high - low == 1:
        return gradients_of(low)
    half = low + next(2**i for i in reversed(range(9)) if 2**i < high - low)
    sides = along_the_tree(low, half), along_the_tree(half, high)
    return [left + right for left, right in zip(*sides, strict=True)]


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5, 7, 12, 13])
def test_one_rank_adds_its_parts_along_the_tree(parts: int) -> None:
    rule = [one.tolist() for one in along_the_tree(0, parts)]
    assert summed(ALONE, parts) == [rule, [float(part) for part in range(parts)]]


@pytest.mark.parametrize(("ranks", "batches"), LAYOUTS)
def test_ranks_have_the_gradients_and_losses_of_one(ranks: int, batches: int) -> None:
    alone = summed(ALONE, ranks * batches)
    assert on_ranks(ranks, lambda group: summed(group, batches)) == [alone] * ranks


def test_a_gradient_that_was_there_is_added_to_and_never_summed_again() -> None:
    """Two updates without zero_grad between them: the second adds to the first."""
    alone = summed(ALONE, 2, updates=2)
    assert on_ranks(2, lambda group: summed(group, 1, updates=2)) == [alone] * 2
    assert alone[0] != summed(ALONE, 2)[0]


def test_ranks_exchange_once_an_update() -> None:
    sums: list[Sum] = []

    def task(group: Group) -> None:
        leaf = engine.zeros(3).requires_grad_()
        parts = PartGradients([leaf], 6, group)
        for _ in range(3):
            parts.begin()
            leaf.sum().backward()
            parts.take(0.0)
            parts.begin()
            assert leaf.grad is None
        assert parts._sum is not None
        sums.append(parts._sum)

    on_ranks(2, task)
    assert [one.count for one in sums] == [1, 1]


def test_between_parts_nothing_is_left_for_an_optimizer() -> None:
    leaf = engine.zeros(2).requires_grad_()
    parts = PartGradients([leaf], 2, ALONE)
    parts.begin()
    leaf.sum().backward()
    assert parts.take(1.0) == [] and leaf.grad is None and parts.pending == 1
    parts.begin()
    leaf.sum().backward()
    assert parts.take(2.0) == [1.0, 2.0]
    assert leaf.grad is not None and leaf.grad.tolist() == [2.0, 2.0] and parts.pending == 0


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_parameter_that_no_part_used_has_no_gradient(ranks: int) -> None:
    """And one that a single part used has that part's, on all ranks."""

    def task(group: Group) -> list[Any]:
        leaves = [engine.zeros(2).requires_grad_() for _ in range(3)]
        parts = PartGradients(leaves, 2, group)
        for part in range(2 // ranks):
            parts.begin()
            leaves[0].sum().backward()
            if group.rank + part == 1:
                leaves[1].sum().backward()
            parts.take(0.0)
        return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]

    assert on_ranks(ranks, task) == [[[2.0, 2.0], [1.0, 1.0], None]] * ranks


def test_gradients_that_share_memory_stay_apart() -> None:
    """Both summands of an addition get the same memory on the way back."""
    a, b = engine.zeros(2).requires_grad_(), engine.zeros(2).requires_grad_()
    parts = PartGradients([a, b], 4, ALONE)
    for _ in range(4):
        parts.begin()
        (a + b).sum().backward()
        parts.take(0.0)
    assert [p.grad.tolist() for p in (a, b) if p.grad is not None] == [[4.0, 4.0]] * 2


def test_dropping_an_update_leaves_what_was_there_before() -> None:
    leaf = engine.zeros(2).requires_grad_()
    leaf.grad = engine.ones(2)
    parts = PartGradients([leaf], 3, ALONE)
    for _ in range(2):
        parts.begin()
        leaf.sum().backward()
        parts.take(0.0)
    parts.drop()
    assert leaf.grad is not None and leaf.grad.tolist() == [1.0, 1.0] and parts.pending == 0


def test_parameters_of_two_types_are_refused_over_ranks() -> None:
    leaves = [engine.zeros(1).requires_grad_(), engine.zeros(1, dtype=engine.float64)]
    with pytest.raises(OptionError, match="parameters of float32 and float64: over several ranks"):
        on_ranks(2, lambda group: PartGradients(leaves, 2, group))


def unsummed(sum_: Sum) -> None:
    """The first row alone: nothing comes from the other ranks."""
    sum_.out.copy_(sum_.source[0])


def summed_twice(sum_: Sum) -> None:
    original(sum_)
    sum_.source[0].copy_(sum_.out)
    original(sum_)


def a_copy_summed(sum_: Sum) -> None:
    before = sum_.out.clone()
    original(sum_)
    sum_.out.copy_(before)


original = Sum.sum


@pytest.mark.parametrize("planted", [unsummed, summed_twice, a_copy_summed])
def test_planted_faults_of_the_sum_do_not_pass(
    planted: Callable[[Sum], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_gradients(sum_: Sum) -> None:
        with engine.no_grad():
            planted(sum_)

    monkeypatch.setattr(Sum, "sum", without_gradients)
    alone = summed(ALONE, 4)
    assert all(each[0] != alone[0] for each in on_ranks(2, lambda group: summed(group, 2)))


def test_a_sum_of_ranks_sends_the_gradients_and_little_more() -> None:
    network = Network(2)
    on_ranks(2, lambda group: summed(group, 1), network=network)
    numbers = sum(engine.zeros(shape).numel() for shape in SHAPES)
    assert 4 * numbers < sum(network.sent) / 2 <= 4 * (numbers + len(SHAPES) + 2 + 32)
