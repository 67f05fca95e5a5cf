"""MNIST to 97 % with gradcli's engine, captured: prints steps and accuracy.

`python benchmarks/mnist97_gradcli.py SEED`, from the project's folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gradcli.data.mnist import Mnist

ROOT = Path(__file__).resolve().parents[1]
BATCH, EVERY, LIMIT, GOAL = 128, 100, 5000, 0.97
TESTED = 1000  # test images at a time


def main(seed: int) -> None:
    """Train until the test images are right often enough."""
    splits = Mnist().locate(ROOT).load().splits  # unpacks while it imports the engine
    train, test = splits["train"], splits["test"]

    from gradcli import engine
    from gradcli.engine import Tensor, nn, optim
    from gradcli.engine.device import cpu
    from gradcli.engine.nn import functional as F

    cpu.set_threads(2)
    engine.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def step(rows: Tensor) -> Tensor:
        x, y = train.batch(rows)
        optimizer.zero_grad()
        loss: Tensor = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @engine.no_grad()
    def right(rows: Tensor) -> Tensor:
        x, y = test.batch(rows)
        hits: Tensor = (model(x).argmax(1) == y).to(engine.float32)
        return hits.mean()

    captured, counted = engine.capture(step), engine.capture(right)
    tests = engine.arange(test.size, dtype=engine.int64).reshape(-1, TESTED)
    each = train.size // BATCH
    rows = engine.empty(0, BATCH, dtype=engine.int64)
    count, epoch, accuracy = 0, 0, 0.0
    while count < LIMIT and accuracy < GOAL:
        if rows.shape[0] < EVERY:
            shuffle = engine.Generator(seed, purpose="shuffle", step=epoch)
            order = engine.randperm(train.size, generator=shuffle)
            rows = engine.cat([rows, order[: each * BATCH].reshape(each, BATCH)])
            epoch += 1
        captured.scan(rows[:EVERY])
        rows = rows[EVERY:]
        count += EVERY
        accuracy = float(counted.scan(tests).mean().item())
    print(json.dumps({"steps": count, "accuracy": accuracy}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
