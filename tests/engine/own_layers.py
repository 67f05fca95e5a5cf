"""Layers as users write them: they look back, around and at a state of their own.

UNDECLARED say nothing of steps; DECLARED say rightly that they work step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli import engine
from gradcli.engine import Tensor, nn

VOCAB, WIDTH, STEPS = 11, 8, 12


def shifted(x: Tensor) -> Tensor:
    """Each step's neighbour to the left; 0 before the first."""
    return engine.cat([engine.zeros_like(x[:, :1]), x[:, :-1]], 1)


class TokenShift(nn.Sequential):
    """Half of the step before, then the layers."""

    def forward(self, input: Any) -> Any:
        return super().forward(input + 0.5 * shifted(input))


class Difference(nn.Linear):
    """The linear map of what has changed since the step before."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input - shifted(input))


class Shift(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        return shifted(input)


class Detour(nn.Sequential):
    """Its forward is Sequential's, its list of layers is not."""

    def __iter__(self) -> Iterator[nn.Module]:
        yield from super().__iter__()
        yield Shift()


class Sharp(nn.SelfAttention):
    """Attention of large weights, which takes it that there are as many queries as keys."""

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=8.0)


class Centred(nn.LayerNorm):
    """LayerNorm of what differs from the mean of all steps."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input - input.mean(1, keepdim=True))


class Around(nn.Module):
    """Half of both neighbours."""

    def forward(self, input: Tensor) -> Tensor:
        after = shifted(input.flip(1)).flip(1)
        return input + 0.5 * (shifted(input) + after)


class Average(nn.Module):
    """The mean of all steps so far."""

    def forward(self, input: Tensor) -> Tensor:
        count = engine.arange(1, input.shape[1] + 1).reshape(-1, 1)
        return input.cumsum(1) / count


class Numbered(nn.Identity):
    """Its own count of steps, which begins anew with each call."""

    def forward(self, input: Tensor) -> Tensor:
        return input + engine.arange(input.shape[1]).reshape(-1, 1) / STEPS


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        return self.gate(input).sigmoid() * self.value(input)


class Look(nn.StatefulModule):
    """Half of the step before, which is its state."""

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        before = self.state
        self.state = input[:, -1:]
        if before is None:
            before = engine.zeros_like(input[:, :1])
        return input + 0.5 * engine.cat([before, input[:, :-1]], 1)


class CausalConv(nn.StatefulModule):
    """A window over this step and the two before."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3)

    @nn.step_by_step(answers_for=["conv"])
    def forward(self, input: Tensor) -> Tensor:
        before = self.state
        if before is None:
            before = input.new_zeros(input.shape[0], 2, WIDTH)
        seen = engine.cat([before, input], 1)
        self.state = seen[:, -2:]
        return self.conv(seen.mT).mT


class Decay(nn.StatefulModule):
    """h = 0.7 h + x at each step."""

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        h = self.state
        states = []
        for x in input.unbind(1):
            h = x if h is None else 0.7 * h + x
            states.append(h)
        self.state = h
        return engine.stack(states, 1)


class Wave(nn.StatefulModule):
    """A sine of each step's number, added to it."""

    @nn.step_by_step
    def forward(self, input: Tensor) -> Tensor:
        first = self.steps_before
        steps = engine.arange(first, first + input.shape[1], dtype=input.dtype)
        return input + steps.reshape(-1, 1).sin()


class OwnAttention(nn.StatefulModule):
    """One head, turned by positions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.rotary = nn.Linear(WIDTH, 3 * WIDTH), nn.RotaryEmbedding(WIDTH, STEPS)

    @nn.step_by_step(answers_for=["rotary"])
    def forward(self, input: Tensor) -> Tensor:
        q, k, v = (part.unsqueeze(1) for part in self.qkv(input).chunk(3, -1))
        q, k = self.rotary(q, self.steps_before), self.rotary(k, self.steps_before)
        if self.cache is not None:
            k, v = self.cache.extend(self, k, v)
        mask = engine.ones(q.shape[2], k.shape[2], dtype=engine.bool_).tril(k.shape[2] - q.shape[2])
        return nn.functional.scaled_dot_product_attention(q, k, v, mask).squeeze(1)


class Small(nn.Linear):
    """Another beginning and no other forward: what Linear says holds for it."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.normal_(self.weight, 0.0, 0.3)


Make = Callable[[], nn.Module]
UNDECLARED: dict[str, Make] = {
    "TokenShift": lambda: TokenShift(nn.Linear(WIDTH, WIDTH)),
    "Difference": lambda: Difference(WIDTH, WIDTH),
    "Detour": lambda: Detour(nn.Linear(WIDTH, WIDTH)),
    "Sharp": lambda: Sharp(WIDTH, 2),
    "Centred": lambda: Centred(WIDTH),
    "Around": Around,
    "Average": Average,
    "Numbered": Numbered,
}
DECLARED: dict[str, Make] = {
    "Gated": Gated,
    "Look": Look,
    "CausalConv": CausalConv,
    "Decay": Decay,
    "Wave": Wave,
    "OwnAttention": OwnAttention,
    "Small": lambda: Small(WIDTH, WIDTH),
}


def around(*layers: nn.Module, dtype: engine.DType = engine.float64) -> nn.Module:
    """A model of text with these layers inside."""
    ends = nn.Embedding(VOCAB, WIDTH), nn.Linear(WIDTH, VOCAB)
    return nn.Sequential(ends[0], *layers, ends[1]).to(dtype).eval()


def assert_the_same(model: nn.Module, cut: tuple[int, ...], error: float = 1e-12) -> None:
    """In portions of these sizes the model gives what it gives for all steps at once."""
    tokens = engine.randint(0, VOCAB, (2, sum(cut)))
    expected, cache = model(tokens), nn.KeyValueCache(model, sum(cut))
    output = engine.cat([cache(part) for part in tokens.split(cut, 1)], 1)
    assert (output - expected).abs().amax().item() < error
    assert expected.var(1).amin().item() > 0  # it tells steps apart
