"""Generation: a model that predicts the next token, asked again and again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradcli.engine import dtype as dtypes
from gradcli.engine.graph import no_grad
from gradcli.engine.nn.key_value_cache import KeyValueCache
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import obstacle
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.random.random import rand
from gradcli.engine.random import Generator
from gradcli.engine.tensor import Tensor
from gradcli.errors import NumericsError, OptionError


@contextmanager
def _evaluation(model: Module) -> Iterator[None]:
    """The model in evaluation mode; afterwards each of its modules is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def cache_obstacle(model: Module) -> str:
    """Why `generate` computes all steps anew for each token of this model; "" if it need not."""
    with _evaluation(model):
        return obstacle(model)


def pick(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> int:
    """A token, with probability softmax(logits / temperature); at temperature 0 the most probable.

    `top_k` leaves the k most probable ones; `top_p` the fewest whose probabilities add up to p
    (Holtzman et al. 2020). Among equals the lower number goes first. One draw of the generator.
    """
    _check_sampling(temperature, top_k, top_p)
    values = logits.tolist()
    if not all(math.isfinite(value) for value in values):
        raise NumericsError("pick: the logits are not all finite, no token can be chosen")
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))[:top_k]
    if temperature == 0:
        return order[0]
    largest = values[order[0]]
    weights = [math.exp((values[i] - largest) / temperature) for i in order]
    if top_p is not None:
        weights = _nucleus(weights, top_p)
    left = rand(1, dtype=dtypes.float64, generator=generator).item() * math.fsum(weights)
    for token, weight in zip(order, weights, strict=False):
        left -= weight
        if left < 0:
            return token
    return order[len(weights) - 1]  # rounding left a little over


def _nucleus(weights: list[float], share: float) -> list[float]:
    """The first weights, falling, that hold this share of the sum; at least one."""
    wanted, held = share * math.fsum(weights), 0.0
    for count, weight in enumerate(weights, 1):
        held += weight
        if held >= wanted:
            return weights[:count]
    return weights


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not 0 <= temperature < math.inf:
        raise OptionError(f"pick: temperature must be 0 or more, got {temperature}")
    if top_k is not None and top_k < 1:
        raise OptionError(f"pick: top_k must be 1 or more, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise OptionError(f"pick: top_p must be above 0 and at most 1, got {top_p}")


def window_start(tokens: int, context: int) -> int:
    """Where the model begins to read: all tokens while they fit.

    Then it moves on by half a context at a time, so that a cache is filled anew as rarely.
    """
    half = max(1, context // 2)
    return max(0, -(-(tokens - context) // half)) * half


def generate(
    model: Module,
    prompt: Sequence[int],
    count: int,
    context: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
    cached: bool = True,
) -> Iterator[int]:
    """`count` tokens, one by one, each picked behind the prompt and those before it.

    `model` takes (1, steps) tokens, at most `context` of them, and gives (1, steps, tokens) logits.
    With `cached` earlier steps are not computed again, unless `cache_obstacle` says why they must.
    """
    if not len(prompt):
        raise OptionError("generate: the prompt needs at least one token")
    if context < 1:
        raise OptionError(f"generate: context must be 1 or more, got {context}")
    _check_sampling(temperature, top_k, top_p)
    tokens, begun = list(prompt), 0
    with _evaluation(model):
        steps = cached and not obstacle(model)
        cache = KeyValueCache(model, context) if steps else None
        for _ in range(count):
            start = window_start(len(tokens), context)
            if cache is not None and start != begun:
                cache.clear()
            begun = start
            logits = _logits(model, cache, tokens[start:])
            tokens.append(pick(logits, temperature, top_k, top_p, generator))
            yield tokens[-1]


@no_grad()
def _logits(model: Module, cache: KeyValueCache | None, window: list[int]) -> Tensor:
    """What follows the window."""
    if cache is None:
        logits: Tensor = model(tensor([window]))
    else:
        logits = cache(tensor([window[cache.length :]]))
    return logits[0, -1]
