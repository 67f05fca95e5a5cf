"""What ranks tell each other beside gradients arrives whole, and faults arrive on all."""

from __future__ import annotations

import json
import sys

import pytest
from rank_threads import Ended, Network, ThreadGroup, on_ranks

from gradcli import engine
from gradcli.data.loader import DataLoader
from gradcli.engine import nn, optim
from gradcli.engine.distributed import ALONE, Group
from gradcli.errors import CheckpointError, NumericsError
from gradcli.train.between_ranks import describe, end_all_with_one, from_main
from gradcli.train.ranks import take_from_first
from gradcli.train.state import weights_sha256


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_rank_0_has_is_on_all_ranks(ranks: int) -> None:
    def task(group: Group) -> bytes:
        return from_main(group, "a test", lambda: json.dumps(group.rank).encode())

    assert on_ranks(ranks, task) == [b"0"] * ranks


@pytest.mark.parametrize("ranks", [1, 3])
def test_an_error_of_rank_0_is_raised_on_all(ranks: int) -> None:
    def failing() -> bytes:
        raise CheckpointError("the disk is full", code="E703", notes=("make room",))

    def task(group: Group) -> tuple[str, str, tuple[str, ...]]:
        with pytest.raises(CheckpointError) as caught:
            from_main(group, "a test", failing)
        return caught.value.code, caught.value.message, caught.value.notes

    assert on_ranks(ranks, task) == [("E703", "the disk is full", ("make room",))] * ranks


def test_weights_and_buffers_of_all_types_are_those_of_rank_0() -> None:
    def model(rank: int) -> nn.Module:
        made = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(0, 2))
        with engine.no_grad():
            for tensor in made.state_dict().values():
                tensor.fill_(rank + 1)
        return made

    def task(group: Group) -> str:
        made = model(group.rank)
        take_from_first(group, made.state_dict().values())
        return weights_sha256(made)

    assert on_ranks(3, task) == [weights_sha256(model(0))] * 3


def test_descriptions_differ_where_things_do() -> None:
    model = nn.Linear(2, 2)
    sgd = [optim.SGD(model.parameters(), lr=rate) for rate in (0.1, 0.2)]
    things = [
        model,
        nn.Linear(2, 3),
        nn.Linear(2, 2, bias=False),
        *sgd,
        optim.lr_scheduler.StepLR(sgd[0], 3),
        DataLoader(range(4), 2, seed=1),
        DataLoader(range(4), 2, seed=2),
        DataLoader(range(5), 2, seed=1),
        DataLoader(range(4), 3, seed=1),
    ]
    assert len({describe(one) for one in things}) == len(things)
    assert describe(nn.Linear(2, 2)) == describe(model)


def test_a_rank_that_raises_says_so_and_ends_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    end_all_with_one(ThreadGroup(Network(2), 1))
    error = NumericsError("the loss is nan")
    with pytest.raises(Ended, match="5"):
        sys.excepthook(type(error), error, None)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "rank 1 on node0 (pid 1001):" and last.endswith("the loss is nan")
    with pytest.raises(Ended, match="1"):
        sys.excepthook(ValueError, ValueError("x"), None)
    assert ALONE.size == 1
