"""Samplers of several ranks: together they give the order of one process, each sample once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.loader import (
    DataLoader,
    DistributedBatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)
from gradcli.errors import OptionError

SIZES = [(1, 1), (7, 3), (12, 4), (13, 4), (3, 4), (0, 2)]


def in_turn(shares: list[list[int]]) -> list[int]:
    """The first of each rank, then the second of each, ..."""
    rounds = chain.from_iterable(zip_longest(*shares))
    return [index for index in rounds if index is not None]


def samplers(samples: int, ranks: int, **options: Any) -> list[DistributedSampler]:
    return [DistributedSampler(range(samples), ranks, rank, **options) for rank in range(ranks)]


@pytest.mark.parametrize(("samples", "ranks"), SIZES)
@pytest.mark.parametrize("epoch", [0, 2])
def test_ranks_take_in_turn_what_one_process_takes(samples: int, ranks: int, epoch: int) -> None:
    whole = RandomSampler(range(samples), generator=engine.Generator(5, purpose="shuffle"))
    shares = samplers(samples, ranks, seed=5)
    for sampler in (whole, *shares):
        sampler.set_epoch(epoch)
    assert in_turn([list(share) for share in shares]) == list(whole)
    assert [len(share) for share in shares] == [len(list(share)) for share in shares]


def test_each_pass_of_a_distributed_sampler_is_the_next_epoch() -> None:
    sampler = DistributedSampler(range(40), 2, 1, seed=3)
    orders = [list(sampler) for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    sampler.set_epoch(1)
    assert list(sampler) == orders[1]


def test_a_distributed_sampler_has_the_seed_of_everything_else() -> None:
    engine.manual_seed(8)
    whole, share = RandomSampler(range(9)), DistributedSampler(range(9), 1, 0)
    assert list(share) == list(whole)


def test_without_shuffle_ranks_take_the_samples_in_turn() -> None:
    assert list(DistributedSampler(range(7), 3, 1, shuffle=False)) == [1, 4]
    assert list(DistributedSampler(range(7), 3, 0, shuffle=False)) == [0, 3, 6]


@pytest.mark.parametrize(("samples", "ranks"), SIZES)
def test_drop_last_gives_all_ranks_as_many(samples: int, ranks: int) -> None:
    shares = [list(one) for one in samplers(samples, ranks, drop_last=True, shuffle=False)]
    assert {len(share) for share in shares} == {samples // ranks}
    assert in_turn(shares) == list(range(samples - samples % ranks))


def test_one_process_takes_all() -> None:
    assert list(DistributedSampler(range(5), shuffle=False)) == [0, 1, 2, 3, 4]


def test_a_rank_beyond_the_last_is_refused() -> None:
    with pytest.raises(OptionError, match="rank 2 of 2 ranks; they count from 0"):
        DistributedSampler(range(5), 2, 2)
    with pytest.raises(OptionError, match="rank 3 of 1 rank; they count from 0"):
        DistributedBatchSampler(SequentialSampler(range(5)), 2, rank=3)


def shares_of(
    samples: int, size: int, ranks: int, batches: int, **options: Any
) -> list[DistributedBatchSampler]:
    return [
        DistributedBatchSampler(
            SequentialSampler(range(samples)),
            size,
            batches=batches,
            num_replicas=ranks,
            rank=rank,
            **options,
        )
        for rank in range(ranks)
    ]


def joined(shares: list[DistributedBatchSampler]) -> list[list[int]]:
    """The batches of all ranks in the order of one process: update by update, rank by rank."""
    passes = [list(share) for share in shares]
    count = shares[0].batches
    assert len({len(one) for one in passes}) == 1
    updates = range(0, len(passes[0]), count)
    return [batch for at in updates for one in passes for batch in one[at : at + count]]


LAYOUTS = [(1, 1), (1, 4), (2, 2), (4, 1), (1, 6), (2, 3), (3, 2), (6, 1)]


@pytest.mark.parametrize("samples", [6, 11, 48, 49, 53, 54, 71])
@pytest.mark.parametrize(("ranks", "batches"), LAYOUTS)
def test_updates_are_those_of_one_rank_that_accumulates(
    samples: int, ranks: int, batches: int
) -> None:
    shares = shares_of(samples, 4, ranks, batches)
    (alone,) = shares_of(samples, 4, 1, ranks * batches)
    assert joined(shares) == list(alone)
    assert list(chain.from_iterable(alone)) == list(range(samples))
    assert all(list(alone))
    assert [len(share) for share in shares] == [len(list(share)) for share in shares]


def test_a_rest_is_cut_evenly_and_one_that_is_too_small_goes_to_the_update_before() -> None:
    assert [len(batch) for batch in shares_of(13, 4, 1, 2)[0]] == [4, 4, 2, 3]
    assert [len(batch) for batch in shares_of(9, 4, 1, 2)[0]] == [4, 5]
    assert [len(batch) for batch in shares_of(9, 4, 1, 2, drop_last=True)[0]] == [4, 4]


def test_batches_of_one_rank_are_those_of_a_loader() -> None:
    assert [len(batch) for batch in shares_of(9, 4, 1, 1)[0]] == [4, 4, 1]


def test_a_pass_with_fewer_samples_than_batches_is_refused() -> None:
    with pytest.raises(OptionError, match=r"3 samples for 2 ranks of 2 batches each"):
        list(shares_of(3, 4, 2, 2)[0])
    assert list(shares_of(3, 4, 2, 2, drop_last=True)[0]) == []


def rank_loaders(workers: int) -> Iterator[DataLoader]:
    """Two ranks over 26 samples."""
    data = TensorDataset(engine.arange(26))
    for rank in range(2):
        batches = DistributedBatchSampler(
            RandomSampler(data, generator=engine.Generator(7)), 4, num_replicas=2, rank=rank
        )
        yield DataLoader(data, batch_sampler=batches, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_with_workers_give_the_order_of_one_process_also_after_an_early_end(
    workers: int,
) -> None:
    whole = DataLoader(
        TensorDataset(engine.arange(26)), 4, shuffle=True, generator=engine.Generator(7)
    )
    list(whole)
    order = [index for (batch,) in whole for index in batch.tolist()]
    passes = []
    for loader in rank_loaders(workers):
        for _ in zip(range(2), loader, strict=False):
            pass  # the first epoch is left early
        passes.append([batch.tolist() for (batch,) in loader])
    assert [index for pair in zip(*passes, strict=True) for b in pair for index in b] == order
