"""All passes on steps drawn at random: whatever they do to the calls, the bits stay."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from replays import ALL, bits, kernels, refuse

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F

SIDE = 36
UNARY = ["exp", "tanh", "relu", "sigmoid", "abs", "neg", "gelu"]


def drawn(seed: int) -> Any:
    """A step that computes, copies, takes views, changes values in place and keeps some."""

    def make() -> Any:
        engine.manual_seed(seed)
        kept = [engine.randn(SIDE, SIDE) for _ in range(3)]

        def step(x: Any) -> Any:
            rng = random.Random(seed)
            values = [x, *kept]
            for _ in range(rng.choice((5, 12, 25))):
                values.append(one(rng, rng.choice(values[-6:]), rng.choice(values[-6:]), kept))
            return *(rng.choice(values[-4:]) for _ in range(2)), values[-1].sum(), *kept

        return step

    return make


def one(rng: random.Random, a: Any, b: Any, kept: list[Any]) -> Any:
    choices = [
        lambda: getattr(engine, rng.choice(UNARY))(a).clamp(-3.0, 3.0),
        lambda: rng.choice((engine.add, engine.mul, engine.maximum))(a, b),
        lambda: a * 0.5 + b[:1],
        lambda: a / (b.abs() + b.abs().sum(1, keepdim=True) + 1),
        lambda: (a @ b) * 0.02,
        lambda: ((a @ b.t().contiguous()) * 0.02).tanh(),
        lambda: a.t().contiguous(),
        lambda: a.clone(),
        lambda: engine.cat([a[:10], b[10:].clone()], 0),
        lambda: changed(a.clone(), b, rng),
        lambda: changed(rng.choice(kept), b.clamp(-1.0, 1.0), rng),
        lambda: a - a.mean(),
    ]
    return rng.choice(choices)()


def changed(a: Any, b: Any, rng: random.Random) -> Any:
    kind = rng.randrange(4)
    if kind == 0:
        a.copy_(b)
    elif kind == 1:
        a.add_(b)
    elif kind == 2:
        a[3:7] = b[3:7].clone()
    else:
        a[:, rng.randrange(SIDE)] = 0.25
    return a


@pytest.mark.parametrize("seed", range(60))
def test_steps_drawn_at_random_keep_their_bits(seed: int) -> None:
    x = engine.ones(SIDE, SIDE) * 0.5
    step = drawn(seed)()
    eager = [bits(step(x)) for _ in range(4)]
    some = random.Random(seed).sample(ALL, 3)
    for passes in (ALL, some):
        captured = engine.capture(drawn(seed)(), passes=passes, on_fallback=refuse)
        assert [bits(captured(x)) for _ in range(4)] == eager


def network(optimizer: Any) -> Any:
    def make() -> Any:
        engine.manual_seed(7)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * 16, 24),
            nn.GELU(),
            nn.Linear(24, 24),
            nn.Tanh(),
            nn.LayerNorm(24),
            nn.Linear(24, 5),
        )
        chosen = optimizer(model.parameters())

        def step(x: Any, y: Any) -> Any:
            chosen.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            norm = optim.clip_grad_norm_(model.parameters(), 0.5)
            chosen.step()
            state = [t.clone() for t in model.state_dict().values()]
            return loss, norm, *state, *(p.grad for p in model.parameters())

        return step

    return make


@pytest.mark.parametrize(
    "optimizer",
    [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.01)],
)
@pytest.mark.parametrize("passes", [(), *[(name,) for name in ALL], ALL], ids=str)
def test_each_pass_alone_and_all_of_them_on_a_network(optimizer: Any, passes: Any) -> None:
    engine.manual_seed(1)
    x, y = engine.randn(6, 1, 8, 8), engine.randint(0, 5, (6,))
    assert kernels(network(optimizer), x, y, passes=passes)


def test_the_documentation_names_every_pass() -> None:
    text = (Path(__file__).parents[3] / "docs" / "capture.md").read_text()
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [name for name in rows if name in ALL] == list(ALL)
