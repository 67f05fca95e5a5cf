"""200 training steps of a small MLP and a small CNN stay beside torch's.

The tolerance is measured, not chosen: torch runs the same training in float32 and in float64, and
the difference is what float32 rounding does to it. We may be off from the float64 run by at most
SPREAD times as much, because our sums are rounded in another order. In float64 itself the same
training must agree to 1e-9.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn, theirs  # noqa: E402

from gradcli.engine import nn, optim  # noqa: E402

pytestmark = pytest.mark.parity
STEPS, BATCH, SPREAD = 200, 8, 4
OPTIMIZERS = [
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("Adam", {"lr": 5e-3}),
    ("AdamW", {"lr": 5e-3, "weight_decay": 0.01}),
]


def mlp(library):
    return library.Sequential(
        library.Flatten(),
        library.Linear(36, 24),
        library.ReLU(),
        library.LayerNorm(24),
        library.Linear(24, 16),
        library.GELU(),
        library.Linear(16, 5),
    )


def cnn(library):
    return library.Sequential(
        library.Conv2d(1, 4, 3, padding=1, bias=False),
        library.BatchNorm2d(4),
        library.ReLU(),
        library.MaxPool2d(2),
        library.Conv2d(4, 6, 2),
        library.Tanh(),
        library.AvgPool2d(2),
        library.Flatten(),
        library.Linear(6, 5),
    )


def batches(dtype):
    images = randn(64, 1, 6, 6, seed=1).to(dtype)
    labels = torch.randint(0, 5, (64,), generator=torch.Generator().manual_seed(2))
    for step in range(STEPS):
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % 64
        yield images[rows], labels[rows]


def train_torch(make, name, options, dtype):
    torch.manual_seed(0)
    model = make(torch.nn).to(dtype)
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    start = {key: value.clone() for key, value in model.state_dict().items()}
    losses = []
    for x, y in batches(dtype):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return start, model, losses


def train_ours(make, name, options, dtype, start):
    model = make(nn).to(FLOATS[dtype])
    model.load_state_dict({key: ours(value) for key, value in start.items()})
    optimizer = getattr(optim, name)(model.parameters(), **options)
    losses = []
    for x, y in batches(dtype):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ours(x)), ours(y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def distance(state, reference):
    """The largest difference of a weight or running statistic."""
    return max(
        (value.double() - reference[key].double()).abs().max().item()
        for key, value in state.items()
    )


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[n for n, _ in OPTIMIZERS])
@pytest.mark.parametrize("make", [mlp, cnn])
def test_200_steps(make, name, options):
    start, exact, exact_losses = train_torch(make, name, options, torch.float64)
    mine, losses = train_ours(make, name, options, torch.float64, start)
    assert distance({k: theirs(v) for k, v in mine.state_dict().items()}, exact.state_dict()) < 1e-9
    assert losses == pytest.approx(exact_losses, abs=1e-9)

    start, single, single_losses = train_torch(make, name, options, torch.float32)
    mine, losses = train_ours(make, name, options, torch.float32, start)
    rounding = distance(single.state_dict(), exact.state_dict())
    found = distance({k: theirs(v) for k, v in mine.state_dict().items()}, exact.state_dict())
    assert rounding < 1e-3
    assert found <= SPREAD * rounding
    off = max(abs(a - b) for a, b in zip(single_losses, exact_losses, strict=True))
    ours_off = max(abs(a - b) for a, b in zip(losses, exact_losses, strict=True))
    assert ours_off <= SPREAD * off
    assert sum(losses[-8:]) < 0.9 * sum(losses[:8])
