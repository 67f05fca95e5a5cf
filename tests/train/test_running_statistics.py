"""Running statistics in a loop of one's own: those of one rank, on any number of ranks."""

from __future__ import annotations

import math
from typing import Any

import pytest
from rank_threads import on_ranks

from gradcli import engine
from gradcli.data.loader import DataLoader, TensorDataset
from gradcli.engine import nn, optim
from gradcli.engine.distributed import ALONE, Group
from gradcli.engine.nn import functional as F
from gradcli.train.accelerator import Accelerator

ROWS = engine.rand(52, 6, generator=engine.Generator(1)) * 3 + 1
LABELS = engine.randint(0, 3, (52,), generator=engine.Generator(2))
NORMS = {
    "batch": lambda: nn.BatchNorm1d(8),
    "average": lambda: nn.BatchNorm1d(8, momentum=None),
    "float64": lambda: nn.BatchNorm1d(8, dtype=engine.float64),
}


def network(kind: str) -> nn.Sequential:
    """With weights of its own seed, so that threads do not share a generator."""
    dtype = engine.float64 if kind == "float64" else engine.float32
    model = nn.Sequential(nn.Linear(6, 8), NORMS[kind](), nn.ReLU(), nn.Linear(8, 3)).to(dtype)
    generator = engine.Generator(3)
    with engine.no_grad():
        for one in model.parameters():
            one.copy_(engine.rand(one.shape, generator=generator) - 0.5)
    return model


def state(group: Group, steps: int, kind: str, spoil: int | None = None) -> dict[str, Any]:
    """All parameters and buffers behind two epochs; on this rank the loss of a batch is NaN."""
    accelerator = Accelerator(steps, group=group, nonfinite="skip")
    model = network(kind)
    sgd = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(ROWS, LABELS), 4, shuffle=True, seed=5, drop_last=True)
    model, sgd, loader = accelerator.prepare(model, sgd, loader)
    dtype = next(model.parameters()).dtype
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x.to(dtype)), y)
                accelerator.backward(loss * math.nan if i == spoil else loss)
                sgd.step()
                sgd.zero_grad()
    return {name: tensor.tolist() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize(("ranks", "steps"), [(2, 1), (3, 1), (2, 2), (2, 3)])
def test_ranks_learn_of_all_micro_batches_in_order(ranks: int, steps: int, kind: str) -> None:
    parts = ranks * steps
    alone = state(ALONE, parts, kind)
    assert alone["1.num_batches_tracked"] == 2 * (52 // (4 * parts)) * parts
    assert on_ranks(ranks, lambda group: state(group, steps, kind)) == [alone] * ranks


def test_an_update_that_is_left_out_teaches_nothing() -> None:
    seen = on_ranks(2, lambda group: state(group, 1, "batch", 3 if group.rank == 1 else None))
    whole = state(ALONE, 2, "batch")
    assert seen[0] == seen[1]
    assert seen[0]["1.num_batches_tracked"] == whole["1.num_batches_tracked"] - 2 * 2


def test_one_micro_batch_on_one_rank_has_the_bits_of_a_plain_loop() -> None:
    model = network("batch")
    sgd = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(ROWS, LABELS), 4, shuffle=True, seed=5, drop_last=True)
    for _ in range(2):
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()
            sgd.step()
            sgd.zero_grad()
    plain = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    assert state(ALONE, 1, "batch") == plain
