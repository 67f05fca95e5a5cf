"""sin^2(x) by a network of ten sigmoids: the regression of the article behind PyNorch, exactly.

Lucas de Lima Nogueira, "Recreating PyTorch from Scratch" (2024), trains 1-10-1 on 51 points from
x = 0 to 20, one at a time, with SGD at 0.001, and prints the loss of the last point after each of
ten epochs: 1.7035 first, 0.1297 in the end. Its weights are `random.uniform(-1, 1)` after
`random.seed(1)`, in the order in which the layers are made; from these we get the same numbers.

    python examples/sin_squared.py
"""

from __future__ import annotations

import random

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F

EPOCHS = 10


def first_weights(model: nn.Module) -> None:
    """The article's: one stream of numbers for all parameters, in their order."""
    random.seed(1)
    with engine.no_grad():
        for parameter in model.parameters():
            numbers = [random.uniform(-1, 1) for _ in range(parameter.numel())]
            parameter.copy_(engine.tensor(numbers).reshape(parameter.shape))


def train() -> list[float]:
    """The loss of the last point after each epoch."""
    model = nn.Sequential(nn.Linear(1, 10), nn.Sigmoid(), nn.Linear(10, 1))
    first_weights(model)
    sgd = optim.SGD(model.parameters(), lr=0.001)
    x = engine.arange(51, dtype=engine.float32).reshape(51, 1, 1) * 0.4
    y = x.sin() * x.sin()

    @engine.capture
    def step(x: engine.Tensor, y: engine.Tensor) -> engine.Tensor:
        sgd.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        sgd.step()
        return loss

    return [step.scan(x, y)[-1].item() for _ in range(EPOCHS)]


if __name__ == "__main__":
    for epoch, loss in enumerate(train(), 1):
        print(f"epoch {epoch:2}  loss {loss:.4f}")
