"""Every layer trains to the same bits whether its step is replayed or run eagerly."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn, optim

LINES, IMAGES = (4, 6, 12), (3, 6, 8, 10)
# (layer, the input's shape)
CASES = [
    (lambda: nn.Conv1d(6, 4, 3, stride=2, padding=1, groups=2), LINES),
    (lambda: nn.Conv1d(6, 6, 3, padding="same", groups=6), LINES),
    (lambda: nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1), LINES),
    (lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, output_padding=1), IMAGES),
    (lambda: nn.Sequential(nn.Conv1d(6, 5, 3), nn.MaxPool1d(2), nn.AvgPool1d(2)), LINES),
    (lambda: nn.GroupNorm(3, 6), IMAGES),
    (lambda: nn.InstanceNorm1d(6, affine=True, track_running_stats=True), LINES),
    (lambda: nn.InstanceNorm2d(6, affine=True), IMAGES),
    (lambda: nn.BatchNorm1d(6, momentum=None), LINES),
    (lambda: nn.RMSNorm(12), LINES),
    (lambda: nn.Sequential(nn.Linear(12, 5), nn.LocalResponseNorm(3)), LINES),
    (lambda: nn.Sequential(nn.Linear(12, 5), nn.Dropout1d(0.3)), LINES),
    (lambda: nn.Sequential(nn.Conv2d(6, 4, 3), nn.Dropout2d(0.3)), IMAGES),
    (lambda: nn.Sequential(nn.Linear(12, 5), nn.AlphaDropout(0.3)), LINES),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(72, 6), nn.Unflatten(1, (2, 3))), LINES),
]


def trained(make, shape, captured):
    engine.manual_seed(7)
    layer = make()
    optimizer = optim.SGD(layer.parameters(), lr=0.05, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        y = layer(x)
        loss = ((y - 1) * (y - 1)).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = engine.capture(step) if captured else step
    batches = [engine.randn(*shape) for _ in range(6)]
    engine.manual_seed(8)
    losses = [run(x).item() for x in batches]
    return losses, {name: value.tolist() for name, value in layer.state_dict().items()}, run


@pytest.mark.parametrize(("make", "shape"), CASES)
def test_a_replayed_step_has_the_bits_of_an_eager_one(make, shape):
    *eager, _ = trained(make, shape, captured=False)
    *replayed, run = trained(make, shape, captured=True)
    assert replayed == eager
    assert run.fallback_reason == ""
    assert run.programs
