"""KeyValueCache with `capture`: single steps are replayed, with the bits of eager ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from own_layers import DECLARED, VOCAB, WIDTH, around

from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.errors import GradcliError

LONG = 40


class Recurrent(nn.StatefulModule):
    """Whose state is what the layer ended with."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    @nn.step_by_step(answers_for=["inner"])
    def forward(self, input: Tensor) -> Tensor:
        y, self.state = self.inner(input, self.state)
        return y


class Named(NamedTuple):
    sum: Tensor


class NamedState(nn.StatefulModule):
    """A state of a form that is not looked into."""

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        before = self.state
        sums = input.cumsum(1) + (0.0 if before is None else before.sum)
        self.state = Named(sums[:, -1:])
        return sums


class Window(nn.StatefulModule):
    """The mean of the last `size` keys: its keys grow, and then move on."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        x = input.unsqueeze(1)
        if self.cache is None:
            return input
        keys, _ = self.cache.extend(self, x, x)
        return keys[:, 0, -self.size :].mean(1, keepdim=True) + input


class Every(nn.StatefulModule):
    """A row of a table by the number of the step, again and again."""

    def __init__(self, period: int) -> None:
        super().__init__()
        self.period = period
        self.weight = nn.Parameter(engine.randn(period, WIDTH))

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        first = self.steps_before
        rows = [(first + i) % self.period for i in range(input.shape[1])]
        return input + engine.stack([self.weight[row] for row in rows])


def attention(**options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.TransformerBlock(nn.SelfAttention(WIDTH, 4, **options), 16)


CAPTURED: dict[str, Callable[[], nn.Module]] = {
    "attention": attention(),
    "shared heads": attention(kv_heads=2),
    "turned heads": attention(kv_heads=1, rotary_steps=LONG),
    "positions": lambda: nn.Positions(LONG, WIDTH, 1.0),
    "LSTM": lambda: Recurrent(nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)),
    "GRU": lambda: Recurrent(nn.GRU(WIDTH, WIDTH, batch_first=True)),
    **{name: make for name, make in DECLARED.items() if name != "OwnAttention"},
}
# What does another thing at some steps, or keeps what is not looked into.
EAGER: dict[str, Callable[[], nn.Module]] = {
    "window": lambda: Window(5),
    "every": lambda: Every(7),
    "alternate": lambda: Every(2),
    "named state": NamedState,
    "too few positions": lambda: nn.Positions(LONG - 3, WIDTH, 1.0),
}


def assert_same_bits(model: nn.Module, *, captured: bool, dtype: Any = None) -> None:
    """Sequences one after the other, of other tokens, beginnings and batches."""
    mine, eager = (nn.KeyValueCache(model, LONG, dtype, capture=on) for on in (True, False))
    for batch, prompt, end in ((2, 5, 30), (2, 1, 37), (2, 20, 25), (3, 4, 9), (2, 6, 12)):
        tokens = engine.randint(0, VOCAB, (batch, LONG))
        for begin, stop in [(0, prompt), *((i, i + 1) for i in range(prompt, end))]:
            expected = eager(tokens[:, begin:stop])
            assert mine(tokens[:, begin:stop]).tolist() == expected.tolist()
            assert mine.length == eager.length == stop
        assert bool(mine.programs) == captured
        mine.clear()
        eager.clear()


@pytest.mark.parametrize("name", CAPTURED)
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
def test_replayed_steps_have_the_bits_of_eager_ones(name: str, dtype: Any) -> None:
    engine.manual_seed(1)
    assert_same_bits(around(CAPTURED[name](), dtype=dtype), captured=True)


@pytest.mark.parametrize("name", EAGER)
def test_what_differs_from_step_to_step_stays_eager(name: str) -> None:
    engine.manual_seed(1)
    assert_same_bits(around(EAGER[name]()), captured=False)


@pytest.mark.parametrize("name", ["attention", "shared heads", "turned heads"])
def test_keys_in_bfloat16_have_one_form_eager_and_replayed(name: str) -> None:
    engine.manual_seed(1)
    model = around(CAPTURED[name](), dtype=engine.float32)
    assert_same_bits(model, captured=True, dtype=engine.bfloat16)
    tokens = engine.randint(0, VOCAB, (1, LONG))
    rounded, exact = nn.KeyValueCache(model, LONG, engine.bfloat16), nn.KeyValueCache(model, LONG)
    rounded(tokens[:, :-1]), exact(tokens[:, :-1])
    difference = (rounded(tokens[:, -1:]) - exact(tokens[:, -1:])).abs().amax().item()
    assert 0 < difference < 0.02


def test_a_replay_sees_weights_that_changed_or_were_replaced() -> None:
    engine.manual_seed(1)
    model = around(CAPTURED["attention"]())
    mine, eager = (nn.KeyValueCache(model, LONG, capture=on) for on in (True, False))
    tokens = engine.randint(0, VOCAB, (1, LONG))
    mine(tokens[:, :3]), eager(tokens[:, :3])
    for step in range(3, 20):
        if step == 8:
            with engine.no_grad():
                model[0].weight.mul_(2.0)
        if step == 13:
            model[-1].weight = nn.Parameter(engine.randn(VOCAB, WIDTH, dtype=engine.float64))
        token = tokens[:, step : step + 1]
        assert mine(token).tolist() == eager(token).tolist()


def test_a_refused_token_changes_nothing() -> None:
    engine.manual_seed(1)
    model = around(CAPTURED["attention"]())
    mine, eager = (nn.KeyValueCache(model, LONG, capture=on) for on in (True, False))
    tokens = engine.randint(0, VOCAB, (1, LONG))
    for begin, end in [(0, 3), (3, 4), (4, 5)]:
        mine(tokens[:, begin:end]), eager(tokens[:, begin:end])
    assert mine.programs
    with pytest.raises(GradcliError, match="index 11 at position 0 is outside"):
        mine(engine.tensor([[VOCAB]]))
    assert mine(tokens[:, 5:6]).tolist() == eager(tokens[:, 5:6]).tolist()


def test_a_cache_keeps_floats() -> None:
    with pytest.raises(GradcliError, match="dtype must be of floats, got"):
        nn.KeyValueCache(around(nn.ReLU()), LONG, engine.int64)
