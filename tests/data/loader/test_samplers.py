from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.loader import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from gradcli.errors import OptionError
from gradcli.train.order import epoch_order


def test_the_shuffle_of_an_epoch_is_that_of_a_training() -> None:
    engine.manual_seed(9)
    sampler = RandomSampler(range(50))
    for epoch in range(3):
        assert list(sampler) == epoch_order(9, epoch, 50).tolist()


def test_an_epoch_can_be_gone_to() -> None:
    sampler = RandomSampler(range(20), generator=engine.Generator(3))
    orders = [list(sampler) for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    sampler.set_epoch(1)
    assert list(sampler) == orders[1]


def test_more_samples_than_there_are_repeat_whole_orders() -> None:
    sampler = RandomSampler(range(4), num_samples=10)
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]


def test_draws_with_replacement_repeat_and_reach_all() -> None:
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=1000))
    counts = Counter(drawn)
    assert set(counts) == set(range(5)) and max(counts.values()) < 300


def test_a_subset_is_drawn_once_each() -> None:
    assert sorted(SubsetRandomSampler([5, 3, 9])) == [3, 5, 9]


def test_weights_are_shares_of_the_draws() -> None:
    engine.manual_seed(1)
    drawn = Counter(WeightedRandomSampler([0, 1, 3, 0], 4000))
    assert set(drawn) == {1, 2}
    assert 2850 < drawn[2] < 3150


def test_weighted_draws_without_replacement_differ() -> None:
    engine.manual_seed(1)
    sampler = WeightedRandomSampler([1, 0, 100, 1], 3, replacement=False)
    orders = [list(sampler) for _ in range(200)]
    assert all(sorted(order) == [0, 2, 3] for order in orders)
    assert sum(order[0] == 2 for order in orders) > 180


@pytest.mark.parametrize(
    ("weights", "count", "replacement"),
    [([0, 0], 1, True), ([1, -1], 1, True), ([float("nan")], 1, True), ([1, 0], 2, False)],
)
def test_weights_that_cannot_be_drawn_from_are_refused(
    weights: list[float], count: int, replacement: bool
) -> None:
    with pytest.raises(OptionError, match="WeightedRandomSampler: "):
        WeightedRandomSampler(weights, count, replacement)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [0, 1, 4, 5])
def test_batches_are_as_many_as_the_length_says(size: int, drop_last: bool) -> None:
    sampler = BatchSampler(SequentialSampler(range(size)), 2, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler) == (size // 2 if drop_last else (size + 1) // 2)
    assert [i for batch in batches for i in batch] == list(range(size - size % 2 * drop_last))


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
def test_a_batch_size_that_is_no_count_is_refused(size: Any) -> None:
    with pytest.raises(OptionError, match="batch_size must be a whole number"):
        BatchSampler(range(3), size)
