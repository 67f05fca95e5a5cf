"""Loaders of ranks: order and draws of one process, which any number of ranks goes on with."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from rank_threads import Network, ThreadGroup

from gradcli import engine
from gradcli.data.loader import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
)
from gradcli.engine import Tensor
from gradcli.errors import OptionError
from gradcli.train.rank_loader import Passes, RankLoader

LAYOUTS = [(1, 4), (2, 2), (4, 1)]


class Pair(NamedTuple):
    x: Tensor
    name: str


def plain(samples: int = 37, **options: Any) -> DataLoader:
    return DataLoader(TensorDataset(engine.arange(samples)), 3, shuffle=True, seed=4, **options)


def loaders(ranks: int, batches: int, **options: Any) -> list[RankLoader]:
    network = Network(ranks)
    return [
        RankLoader(
            plain(**options), batches, ThreadGroup(network, rank), "cpu", Passes(lambda one: None)
        )
        for rank in range(ranks)
    ]


def taken(loader: RankLoader) -> list[list[int]]:
    return [batch.tolist() for (batch,) in loader]


def one_pass(ranks: list[RankLoader]) -> list[int]:
    """The samples of a pass in the order of one process."""
    passes = [taken(loader) for loader in ranks]
    count = ranks[0].division.batches
    order: list[int] = []
    for at in range(0, len(passes[0]), count):
        order += [i for one in passes for batch in one[at : at + count] for i in batch]
    return order


@pytest.mark.parametrize(("ranks", "batches"), LAYOUTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_give_the_order_of_one_process(ranks: int, batches: int, workers: int) -> None:
    whole = plain()
    orders = [[i for (batch,) in whole for i in batch.tolist()] for _ in range(2)]
    here = loaders(ranks, batches, num_workers=workers if ranks < 4 else 0)
    assert [one_pass(here), one_pass(here)] == orders


@pytest.mark.parametrize(("ranks", "batches"), LAYOUTS)
def test_a_pass_that_was_left_early_changes_nothing_in_the_next(ranks: int, batches: int) -> None:
    whole = plain()
    list(whole)
    here = loaders(ranks, batches)
    for loader in here:
        next(iter(loader))
    assert one_pass(here) == [i for (batch,) in whole for i in batch.tolist()]


@pytest.mark.parametrize("before", LAYOUTS)
@pytest.mark.parametrize("after", LAYOUTS)
def test_any_number_of_ranks_goes_on_in_the_middle_of_a_pass(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    whole = plain()
    list(whole)
    rest = [i for (batch,) in whole for i in batch.tolist()][24:]
    here = loaders(*before)
    one_pass(here)
    states = []
    for loader in here:
        iterator = iter(loader)
        for _ in range(2 * before[1]):  # two updates of 12 samples
            next(iterator)
        states.append(loader.state_dict())
    assert states == [{"seed": 4, "epoch": 1, "samples": 24}] * before[0]
    resumed = loaders(*after)
    for loader in resumed:
        loader.load_state_dict(states[0])
    assert one_pass(resumed) == rest


def test_a_state_of_other_updates_is_refused() -> None:
    (loader,) = loaders(1, 2)
    with pytest.raises(OptionError, match="12 samples of a pass, where an update of 8 batches"):
        loaders(1, 8)[0].load_state_dict({"seed": 4, "epoch": 0, "samples": 12})
    with pytest.raises(OptionError, match="no state of a prepared DataLoader"):
        loader.load_state_dict(plain().state_dict())


def drawn(loader: RankLoader) -> dict[tuple[int, ...], float]:
    """What the default generator gives while each batch is in hand."""
    return {tuple(batch.tolist()): engine.rand(1).item() for (batch,) in loader}


def test_draws_belong_to_the_batch_and_not_to_the_rank() -> None:
    engine.manual_seed(3)
    (alone,) = loaders(1, 4)
    whole = [drawn(alone), drawn(alone)]
    assert len({value for one in whole for value in one.values()}) == 2 * len(whole[0])
    shares = loaders(2, 2)
    for expected in whole:
        merged: dict[tuple[int, ...], float] = {}
        for share in shares:
            merged |= drawn(share)
        assert merged == expected


def test_masks_keyed_by_rank_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above with a planted fault: every rank draws from where it stands."""
    monkeypatch.setattr(Passes, "enter", lambda *arguments: None)
    engine.manual_seed(3)
    (alone,) = loaders(1, 4)
    whole = drawn(alone)
    engine.manual_seed(3)
    assert drawn(loaders(2, 2)[1]).items() - whole.items()


def test_after_a_pass_the_generator_goes_on_where_it_was() -> None:
    engine.manual_seed(3)
    engine.rand(2)
    before = engine.default_generator.get_state()
    (loader,) = loaders(1, 2)
    drawn(loader)
    assert engine.default_generator.get_state() == before
    for _ in loader:
        engine.rand(3)
        break
    assert engine.default_generator.get_state() == before


def test_a_pass_within_a_pass_gives_its_draws_back() -> None:
    engine.manual_seed(3)
    (outer,) = loaders(1, 2)
    (inner,) = loaders(1, 2)
    before = engine.default_generator.get_state()
    whole = drawn(outer)
    again: dict[tuple[int, ...], float] = {}
    outer.load_state_dict({"seed": 4, "epoch": 0, "samples": 0})
    for (batch,) in outer:
        drawn(inner)
        again[tuple(batch.tolist())] = engine.rand(1).item()
    assert again == whole
    assert engine.default_generator.get_state() == before


def test_one_rank_that_accumulates_nothing_draws_as_a_loop_without_it() -> None:
    engine.manual_seed(3)
    expected = [engine.rand(1).item() for _ in plain()]
    engine.manual_seed(3)
    assert [*drawn(loaders(1, 1)[0]).values()] == expected


def test_workers_of_two_ranks_draw_different_numbers() -> None:
    first, second = loaders(2, 1, num_workers=2)
    seeds = [one._seed_of_workers() for one in (first, second)]
    assert {seeds[0] + i for i in range(2)}.isdisjoint(seeds[1] + i for i in range(2))


class Stream(IterableDataset[int]):
    pass


@pytest.mark.parametrize(
    ("loader", "why"),
    [
        (lambda: DataLoader(Stream()), "an IterableDataset cannot be dealt out"),
        (
            lambda: DataLoader(range(4), sampler=DistributedSampler(range(4), 1, 0)),
            "has a DistributedSampler, so its samples are dealt out already",
        ),
        (lambda: DataLoader(range(4), batch_size=None), "the DataLoader has no batch_size"),
        (lambda: DataLoader(range(4), batch_sampler=[[0, 1]]), "the DataLoader has list"),
    ],
)
def test_what_cannot_be_dealt_out_is_refused(loader: Any, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        RankLoader(loader(), 1, ThreadGroup(Network(1), 0), "cpu", Passes(lambda one: None))


def test_batches_keep_their_containers() -> None:
    def pairs(samples: list[Any]) -> dict[str, Any]:
        x = engine.tensor([float(one) for one in samples])
        return {"pair": Pair(x, "a"), "list": [x, 1], "text": "b"}

    loader = DataLoader(range(4), 2, collate_fn=pairs)
    ours = RankLoader(loader, 1, ThreadGroup(Network(1), 0), "cpu", Passes(lambda one: None))
    batch = next(iter(ours))
    assert type(batch["pair"]) is Pair and batch["pair"].name == "a" and batch["text"] == "b"
    assert batch["list"][0].tolist() == [0.0, 1.0] and batch["list"][1] == 1
