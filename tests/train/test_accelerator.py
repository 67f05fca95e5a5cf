"""Accelerator: one rank changes no loop, N have the bits of one that accumulates N times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from rank_threads import on_ranks

from gradcli import engine
from gradcli.data.loader import DataLoader, TensorDataset
from gradcli.engine import Tensor, nn, optim
from gradcli.engine.distributed import ALONE, Group
from gradcli.engine.nn import functional as F
from gradcli.errors import GradcliError, NumericsError, OptionError, OptionTypeError
from gradcli.train.accelerator import Accelerator
from gradcli.train.state import weights_sha256

LAYOUTS = [(2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (2, 3)]
ROWS = engine.rand(54, 6, generator=engine.Generator(1))
LABELS = engine.randint(0, 3, (54,), generator=engine.Generator(2))


def network(seed: int = 3) -> nn.Module:
    """With weights of its own seed, so that threads do not share a generator."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    generator = engine.Generator(seed)
    with engine.no_grad():
        for one in model.parameters():
            one.copy_(engine.rand(one.shape, generator=generator) - 0.5)
    return model


def samples(size: int = 4) -> DataLoader:
    return DataLoader(TensorDataset(ROWS, LABELS), size, shuffle=True, seed=5)


class Loop:
    """A user's loop over an accelerator: three epochs, clipping, and a schedule by updates."""

    def __init__(self, accelerator: Accelerator, model: nn.Module | None = None) -> None:
        self.accelerator = accelerator
        model = model or network()
        adam = optim.AdamW(model.parameters(), lr=0.02)
        schedule = optim.lr_scheduler.StepLR(adam, 4)
        self.model, self.adam, self.schedule, self.loader = accelerator.prepare(
            model, adam, schedule, samples()
        )

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(self.model(x), y)
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(0.5)
        self.adam.step()
        self.schedule.step()
        self.adam.zero_grad()
        return loss

    def train(self, epochs: int = 3) -> dict[str, Any]:
        for _ in range(epochs):
            for x, y in self.loader:
                self.step(x, y)
        return self.outcome

    @property
    def outcome(self) -> dict[str, Any]:
        return {
            "weights": weights_sha256(self.model),
            "rate": self.schedule.get_last_lr(),
            "updates": self.accelerator.updates,
            "norm": self.accelerator.grad_norm,
        }


def trained(group: Group, steps: int = 1, **options: Any) -> dict[str, Any]:
    return Loop(Accelerator(steps, group=group, **options)).train()


def test_one_rank_has_the_bits_of_a_loop_without_it() -> None:
    def dropping() -> nn.Module:
        engine.manual_seed(7)
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))

    model = dropping()
    adam = optim.AdamW(model.parameters(), lr=0.02)
    schedule = optim.lr_scheduler.StepLR(adam, 4)
    norm, loader = 0.0, samples()
    for _ in range(3):
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()
            norm = optim.clip_grad_norm_(model.parameters(), 0.5).item()
            adam.step()
            schedule.step()
            adam.zero_grad()
    loop = Loop(Accelerator(), dropping())
    assert loop.train() == {
        "weights": weights_sha256(model),
        "rate": schedule.get_last_lr(),
        "updates": 42,
        "norm": norm,
    }


@pytest.mark.parametrize("steps", [2, 3])
def test_accumulation_has_the_bits_of_a_loop_that_divides_the_loss(steps: int) -> None:
    model = network()
    sgd = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = list(samples(4))[:12]
    for number, (x, y) in enumerate(batches, 1):
        (F.cross_entropy(model(x), y) / steps).backward()
        if number % steps == 0:
            sgd.step()
            sgd.zero_grad()
    accelerator = Accelerator(steps)
    ours = accelerator.prepare(network())
    assert isinstance(ours, nn.Module)
    sgd = accelerator.prepare(optim.SGD(ours.parameters(), lr=0.1, momentum=0.9))
    for x, y in batches:
        with accelerator.accumulate(ours):
            accelerator.backward(F.cross_entropy(ours(x), y))
            sgd.step()
            sgd.zero_grad()
    assert weights_sha256(ours) == weights_sha256(model)


@pytest.mark.parametrize(("ranks", "steps"), LAYOUTS)
def test_ranks_have_the_bits_of_one_that_accumulates_all_their_batches(
    ranks: int, steps: int
) -> None:
    alone = trained(ALONE, ranks * steps)
    assert on_ranks(ranks, lambda group: trained(group, steps)) == [alone] * ranks


def test_weights_come_from_rank_0() -> None:
    def weights(group: Group) -> str:
        return weights_sha256(Accelerator(group=group).prepare(network(seed=group.rank)))

    assert on_ranks(3, weights) == [weights_sha256(network(seed=0))] * 3


def test_micro_batches_between_updates_leave_no_gradient_and_change_no_weight() -> None:
    loop = Loop(Accelerator(3))
    before = weights_sha256(loop.model)
    seen = []
    for x, y in loop.loader:
        loop.accelerator.backward(F.cross_entropy(loop.model(x), y))
        seen.append((loop.accelerator.sync_grad, loop.accelerator.clip_grad_norm_() is not None))
        loop.adam.step()
        loop.adam.zero_grad()
        if len(seen) < 3:
            assert weights_sha256(loop.model) == before
    assert seen[:6] == [(False, False), (False, False), (True, True)] * 2
    assert weights_sha256(loop.model) != before


def test_a_block_without_backward_is_a_micro_batch_that_adds_nothing() -> None:
    def gradient(group: Group) -> Any:
        accelerator = Accelerator(group=group)
        model = accelerator.prepare(nn.Linear(2, 1, bias=False))
        with accelerator.accumulate(model):
            if group.rank == 1:
                accelerator.backward(model(engine.ones(1, 2)).sum())
        assert accelerator.sync_grad
        return model.weight.grad.tolist()

    assert on_ranks(2, gradient) == [[[0.5, 0.5]]] * 2


def test_an_update_that_a_loop_left_early_does_not_count() -> None:
    loop = Loop(Accelerator(4))
    for x, y in loop.loader:
        loop.step(x, y)
        break
    assert not loop.accelerator.sync_grad
    unbroken = Loop(Accelerator(4))
    next(iter(unbroken.loader))
    assert loop.train(1) == unbroken.train(1)


def test_two_models_of_one_accelerator_learn_from_losses_of_their_own() -> None:
    """As in a GAN: each backward is an update, and reaches what its loss depends on."""

    def both(group: Group) -> list[str]:
        accelerator = Accelerator(1 if group.size > 1 else 2, group=group)
        first, second = (accelerator.prepare(network(seed)) for seed in (1, 2))
        sgd = [optim.SGD(one.parameters(), lr=0.1) for one in (first, second)]
        rows = iter(accelerator.prepare(samples()))
        for _ in range(6 // group.size):
            x, y = next(rows)
            accelerator.backward(F.cross_entropy(first(x), y))
            for one in sgd:
                one.step()
                one.zero_grad()
        del second
        return [weights_sha256(one) for one in accelerator.models]

    alone = both(ALONE)
    assert on_ranks(2, both) == [alone] * 2
    assert alone[0] != weights_sha256(network(1)) and alone[1] == weights_sha256(network(2))


# -- losses that are not finite --------------------------------------------------------------------


def spoiled(group: Group, nonfinite: str) -> dict[str, Any]:
    """Three updates of two parts; rank 1 has a loss of NaN in the second."""
    accelerator = Accelerator(2 // group.size, nonfinite=nonfinite, group=group)
    model = accelerator.prepare(network())
    sgd = optim.SGD(model.parameters(), lr=0.1)
    for part, (x, y) in enumerate(list(samples())[:6]):
        if part % group.size == group.rank:
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss * math.nan if part == 3 else loss)
            sgd.step()
            sgd.zero_grad()
    return {"weights": weights_sha256(model), "skipped": accelerator.skipped}


def test_an_update_with_a_loss_of_nan_is_skipped_on_all_ranks() -> None:
    alone = spoiled(ALONE, "skip")
    assert alone["skipped"] == 1
    assert on_ranks(2, lambda group: spoiled(group, "skip")) == [alone] * 2


def test_a_loss_of_nan_is_an_error_on_all_ranks_that_names_the_one() -> None:
    def sentence(group: Group) -> str:
        with pytest.raises(NumericsError) as caught:
            spoiled(group, "raise")
        return caught.value.message

    assert set(on_ranks(2, sentence)) == {
        "backward: in update 2 the loss of rank 1 on node0 (pid 1001), micro-batch 1 of 1, is nan; "
        'Accelerator(nonfinite="skip") leaves such updates out'
    }


# -- metrics ---------------------------------------------------------------------------------------


def test_means_are_weighed_by_their_counts() -> None:
    def mean(group: Group) -> Any:
        accelerator = Accelerator(group=group)
        value = engine.tensor([2.0, 5.0, math.nan][group.rank])
        return [
            accelerator.gather_for_metrics(value, [3, 1, 0][group.rank]),
            accelerator.gather_for_metrics(float(group.rank)),
        ]

    assert on_ranks(3, mean) == [[2.75, 1.0]] * 3
    assert Accelerator().gather_for_metrics(engine.tensor(0.1)) == engine.tensor(0.1).item()


def test_rows_of_all_ranks_stand_in_the_order_of_ranks() -> None:
    def rows(group: Group) -> Any:
        own = engine.full((group.rank, 2), group.rank, dtype=engine.int64)
        return Accelerator(group=group).gather_for_metrics(own).tolist()

    assert on_ranks(3, rows) == [[[1, 1], [2, 2], [2, 2]]] * 3


def test_a_count_below_0_is_refused() -> None:
    with pytest.raises(OptionError, match="count must be 0 or more, got -1"):
        Accelerator().gather_for_metrics(1.0, -1)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [None, {}, engine.zeros(1), [1], samples])
def test_prepare_refuses_what_it_does_not_know(odd: object) -> None:
    with pytest.raises(OptionTypeError, match="takes modules, optimizers, schedulers and DataLo"):
        Accelerator().prepare(network(), odd)


def test_ranks_that_prepare_different_things_are_told_on_all_ranks() -> None:
    def sentence(group: Group) -> str:
        with pytest.raises(OptionError) as caught:
            Accelerator(group=group).prepare(nn.Linear(2, 2 + group.rank // 2))
        assert caught.value.code == "E804"
        return caught.value.message

    (words,) = set(on_ranks(3, sentence))
    assert words.startswith("prepare: rank 2 on node1 (pid 1002) has Linear of 2 tensors (")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda a: a.backward(engine.zeros(1)), "there is nothing to train; prepare the model"),
        (
            lambda a: a.backward(engine.zeros(2)),
            "a loss of one number, got a gradcli.float32 Tensor",
        ),
        (lambda a: a.backward(1.0), "takes a loss of one number, got 1.0"),
    ],
)
def test_a_backward_of_nothing_is_refused(wrong: Callable[[Accelerator], None], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        wrong(Accelerator())


def test_blocks_of_accumulate_are_micro_batches() -> None:
    accelerator = Accelerator(2)
    model = accelerator.prepare(nn.Linear(1, 1))
    with pytest.raises(OptionError, match="a block is one micro-batch"):  # noqa: SIM117
        with accelerator.accumulate(), accelerator.accumulate():
            pass
    with accelerator.accumulate():
        accelerator.backward(model(engine.ones(1)))
        with pytest.raises(OptionError, match="a second time in one accumulate block"):
            accelerator.backward(model(engine.ones(1)))


def test_options_are_checked() -> None:
    with pytest.raises(GradcliError, match="gradient_accumulation_steps must be"):
        Accelerator(0)
    with pytest.raises(GradcliError, match="nonfinite must be"):
        Accelerator(nonfinite="ignore")  # type: ignore[arg-type]
    with pytest.raises(GradcliError, match="no device 'tpu'"):
        Accelerator(device="tpu")


# -- the rest --------------------------------------------------------------------------------------


def test_rank_0_alone_is_the_main_process_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def task(group: Group) -> tuple[int, int, bool]:
        accelerator = Accelerator(group=group)
        accelerator.print("from", group.rank, end="!\n")
        accelerator.wait_for_everyone()
        accelerator.end_training()
        return accelerator.rank, accelerator.num_processes, accelerator.is_main_process

    assert on_ranks(3, task) == [(0, 3, True), (1, 3, False), (2, 3, False)]
    assert capsys.readouterr().out == "from 0!\n"


def test_the_device_is_that_of_the_rank_on_its_host() -> None:
    def devices(group: Group) -> list[str]:
        return [Accelerator(device=name, group=group).device for name in ("cpu", "cuda", "cuda:2")]

    assert on_ranks(3, devices) == [
        ["cpu", "cuda", "cuda:2"],
        ["cpu", "cuda:1", "cuda:2"],
        ["cpu", "cuda", "cuda:2"],
    ]
    assert Accelerator().device == "cpu"
