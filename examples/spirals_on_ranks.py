"""Two spirals by a loop of one's own that any number of processes shares, with the same bits.

    python examples/spirals_on_ranks.py
    mpirun -n 2 python examples/spirals_on_ranks.py
    mpirun -n 4 python examples/spirals_on_ranks.py

All three print the same losses and the same sha256 of the weights: an update is made of four
batches, whoever makes them. What Accelerator adds to a plain loop has a comment.
"""

from __future__ import annotations

import argparse

from gradcli import engine
from gradcli.data import DataLoader, TensorDataset
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F
from gradcli.train.accelerator import Accelerator
from gradcli.train.state import weights_sha256

PARTS = 4  # batches in an update, of all ranks together


def spirals(samples: int) -> TensorDataset:
    """Points on two arms, with a little noise."""
    turn = engine.rand(samples) * 6 + 0.5
    arm = engine.randint(0, 2, (samples,))
    angle = turn + 3.14159 * arm
    points = engine.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / 6
    return TensorDataset(points + 0.02 * engine.randn(samples, 2), arm)


def main() -> None:
    """Train, and say how it went."""
    parser = argparse.ArgumentParser(description="Two spirals on any number of ranks.")
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs

    accelerator = Accelerator()  # joins the ranks of mpirun, if there are any
    if PARTS % accelerator.num_processes:
        raise SystemExit(f"{PARTS} batches in an update: start 1, 2 or 4 ranks")
    accelerator = Accelerator(PARTS // accelerator.num_processes)
    engine.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(2, 64),
        nn.Tanh(),
        nn.Dropout(0.05),
        nn.Linear(64, 64),
        nn.Tanh(),
        nn.Linear(64, 2),
    )
    adam = optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(spirals(2_000), batch_size=16, shuffle=True, seed=1)
    # rank 0's weights for all, and this rank's share of the batches
    model, adam, loader = accelerator.prepare(model, adam, loader)
    for epoch in range(1, epochs + 1):
        total = count = 0.0
        for points, arms in loader:
            loss = F.cross_entropy(model(points), arms)
            accelerator.backward(loss)  # in place of loss.backward()
            accelerator.clip_grad_norm_(1.0)
            adam.step()
            adam.zero_grad()
            total, count = total + loss.item() * len(arms), count + len(arms)
        mean = accelerator.gather_for_metrics(total / count, count)  # over the samples of all ranks
        accelerator.print(f"epoch {epoch:2}  loss {mean:.4f}")  # on rank 0
    accelerator.print(f"weights {weights_sha256(model)}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
