"""The order of many samples: a bijection for each seed and epoch, computed place by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from tiny import go_on, only_run, tiny_job, train

from gradcli import engine
from gradcli.train import order as orders
from gradcli.train.large_order import LargeOrder, halves_of
from gradcli.train.order import MAX_LISTED, Order, epoch_order, order_of


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 7, 16, 17, 101, 1000, 4099, 65536, 99991])
def test_every_sample_has_one_place(samples: int) -> None:
    order = LargeOrder(3, 5, samples)[0:samples]
    assert sorted(order.tolist()) == list(range(samples))


@pytest.mark.parametrize("samples", [MAX_LISTED + 1, 10**7 + 19, 3 * 10**10 + 7, 2**40 - 87])
def test_halves_waste_next_to_nothing_of_any_number(samples: int) -> None:
    left, right = halves_of(samples)
    assert 0 <= left * right - samples < samples / 10_000
    assert abs(left - right) <= 1024


def test_places_far_out_are_within_range_and_differ() -> None:
    samples = 3 * 10**10 + 7
    order = LargeOrder(1, 0, samples)
    numbers = [n for first in (0, 10**9, samples - 50) for n in order[first : first + 50].tolist()]
    assert len(set(numbers)) == 150 and all(0 <= n < samples for n in numbers)
    assert max(numbers) > samples * 0.9 and min(numbers) < samples * 0.1


def test_a_seed_and_an_epoch_have_an_order_of_their_own() -> None:
    orders = {tuple(LargeOrder(*key, 5000)[0:20].tolist()) for key in [(1, 0), (1, 1), (2, 0)]}
    assert len(orders) == 3
    assert LargeOrder(1, 1, 5000)[7:20].tolist() == LargeOrder(1, 1, 5000)[0:20].tolist()[7:]


def test_pairs_of_first_samples_are_all_as_frequent() -> None:
    samples, epochs = 11, 1200
    counts = Counter(tuple(LargeOrder(9, e, samples)[0:2].tolist()) for e in range(epochs))
    pairs = list(permutations(range(samples), 2))
    expected = epochs / len(pairs)
    chi_square = sum((counts[pair] - expected) ** 2 / expected for pair in pairs)
    free = len(pairs) - 1
    assert chi_square < free + 5 * (2 * free) ** 0.5


def test_neighbours_lie_anywhere() -> None:
    """Of samples that follow each other: how far apart, and how far from their places."""
    samples, bins = 100_003, 32
    numbers = LargeOrder(4, 0, samples)[0:samples].tolist()
    gaps = [(b - a) % samples for a, b in pairwise(numbers)]
    moves = [(number - place) % samples for place, number in enumerate(numbers)]
    far = [(b - a) % samples for a, b in zip(numbers, numbers[317:], strict=False)]
    for differences in (gaps, moves, far):
        counts = Counter(one * bins // samples for one in differences)
        expected = len(differences) / bins
        chi_square = sum((counts[i] - expected) ** 2 / expected for i in range(bins))
        assert chi_square < bins - 1 + 5 * (2 * (bins - 1)) ** 0.5


def test_memory_is_that_of_the_root_of_the_number_of_samples(
    allocated: Callable[[], int],
) -> None:
    before = allocated()
    order = LargeOrder(1, 0, 10**12)
    assert order[0:5].shape == (5,)
    assert allocated() - before < 60e6


def test_up_to_the_limit_the_order_is_the_listed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MAX_LISTED", 42)
    listed = order_of(5, 2, 42)
    assert isinstance(listed, engine.Tensor) and listed.tolist() == epoch_order(5, 2, 42).tolist()
    assert isinstance(order_of(5, 2, 43), LargeOrder)


@pytest.mark.parametrize("batch", [1, 8, 50])
def test_an_epoch_is_the_same_for_any_batch(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(orders, "MAX_LISTED", 10)
    steps = -(-103 // batch)
    order, whole = Order(7, batch, 103, steps), LargeOrder(7, 1, 103)[0:103].tolist()
    numbers, done = [], steps
    while done < 2 * steps:
        count = order.alike(done)
        numbers += order.rows(done, count).flatten().tolist()
        done += count
    assert numbers == whole


def test_a_resumed_run_goes_on_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = train(tmp_path / "listed").weights_sha256
    monkeypatch.setattr(orders, "MAX_LISTED", 10)
    seen: list[list[int]] = []
    job = tiny_job()
    job.dataset.splits["train"].on_batch = seen.append
    whole = train(tmp_path / "whole", job).weights_sha256
    assert whole != listed
    train(tmp_path / "part", max_steps=8)
    assert go_on(only_run(tmp_path / "part")).weights_sha256 == whole
    assert sorted(i for row in seen[-6:] for i in row) == list(range(42))


def test_a_rehearsal_needs_no_numbers() -> None:
    with engine.device("meta"):
        assert LargeOrder(1, 0, 10**12)[8:24].shape == (16,)
