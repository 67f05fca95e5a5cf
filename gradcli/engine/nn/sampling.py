"""Sampling: which token comes next, by the logits of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli import deprecated
from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.graph import no_grad
from gradcli.engine.ops.creation.creation import tensor, zeros
from gradcli.engine.ops.random.random import rand
from gradcli.engine.program.capture import capture
from gradcli.engine.random import Generator
from gradcli.engine.tensor import Tensor
from gradcli.errors import NumericsError, OptionError


class TokenSampler:
    """Tokens with probability softmax(logits / temperature), one a row, each row by its generator.

    At temperature 0 the most probable one, without a draw. `top_k` leaves the k most probable ones;
    `top_p` the fewest whose probabilities add up to p (Holtzman et al. 2020). Among equals the
    lower number goes first. Logits of tokens that were seen are divided by `repetition_penalty`
    where they are positive and else multiplied by it (Keskar et al. 2019, CTRL). With `captured`
    the picks that follow are replayed, with the same bits.
    """

    def __init__(
        self,
        generators: Sequence[Generator | None] = (None,),
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float = 1.0,
        *,
        captured: bool = False,
    ) -> None:
        if not 0 <= temperature < math.inf:
            raise OptionError(f"pick: temperature must be 0 or more, got {temperature}")
        if top_k is not None and top_k < 1:
            raise OptionError(f"pick: top_k must be 1 or more, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise OptionError(f"pick: top_p must be above 0 and at most 1, got {top_p}")
        if not 0 < repetition_penalty < math.inf:
            raise OptionError(f"pick: repetition_penalty must be above 0, got {repetition_penalty}")
        self.generators = tuple(generators)
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.repetition_penalty = repetition_penalty
        self._before: list[int] = []
        self._used_tokens: Tensor | None = None
        self._captured_pick = capture(self._pick, on_fallback=lambda _: None, eager=not captured)

    def see(self, prompt: Sequence[int]) -> None:
        """These tokens stand before all that are picked, in every row."""
        self._before += prompt

    def __call__(self, logits: Tensor) -> Tensor:
        """Of logits (rows, steps, tokens) a token each, (rows, 1), behind the last step.

        Raises:
            NumericsError: logits are not all finite.
        """
        if self.repetition_penalty != 1 and self._used_tokens is None:
            self._used_tokens = zeros(logits.shape[0], logits.shape[-1], dtype=dtypes.bool_)
            self._see(tensor([self._before] * logits.shape[0], dtype=dtypes.int64))
        tokens: Tensor = self._captured_pick(logits)
        if min(tokens.flatten().tolist()) < 0:
            raise NumericsError("pick: the logits are not all finite, no token can be chosen")
        return tokens

    @no_grad()
    def _pick(self, logits: Tensor) -> Tensor:
        """The tokens; -1 where logits are not all finite."""
        logits = logits[:, -1]
        finite = table.isfinite(logits).all(-1, keepdim=True)
        if self._used_tokens is not None:
            less, more = logits / self.repetition_penalty, logits * self.repetition_penalty
            logits = table.where(self._used_tokens, table.where(logits > 0, less, more), logits)
        tokens = self._draw(logits) if self.temperature else logits.argmax(-1, keepdim=True)
        self._see(tokens)
        return table.where(finite, tokens, -1)

    def _see(self, tokens: Tensor) -> None:
        if self._used_tokens is not None:
            self._used_tokens.copy_(self._used_tokens.scatter(1, tokens, True))

    def _draw(self, logits: Tensor) -> Tensor:
        """The first token, by falling logits, whose sum of weights exceeds the draw."""
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            values, order = logits.topk(self.top_k)
        else:
            values, order = logits.sort(-1, descending=True, stable=True)
        heights = values.double()
        sums = ((heights - heights[:, :1]) / self.temperature).exp().cumsum(-1)
        last = logits.new_full((logits.shape[0], 1), values.shape[-1] - 1, dtype=dtypes.int64)
        if self.top_p is not None:
            last = (sums < self.top_p * sums[:, -1:]).sum(-1, keepdim=True).minimum(last)
        draws = table.cat([rand(1, dtype=dtypes.float64, generator=g) for g in self.generators])
        levels = draws.to(logits.device).reshape(-1, 1) * sums.gather(-1, last)
        index = (sums <= levels).sum(-1, keepdim=True).minimum(last)
        return order.gather(-1, index)


def pick(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> int:
    """A token by its logits, (tokens,); see `Sampler`. One draw of the generator."""
    sampler = TokenSampler([generator], temperature, top_k, top_p)
    return int(sampler(logits.reshape(1, 1, -1)).item())


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return deprecated.lookup(__name__, {"Sampler": "TokenSampler"}, name)
