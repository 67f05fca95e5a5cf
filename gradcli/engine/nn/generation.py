"""Generation: a model that predicts the next token, asked again and again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from gradcli.engine.dtype import DType
from gradcli.engine.graph import no_grad
from gradcli.engine.nn.key_value_cache import KeyValueCache
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.sampling import TokenSampler
from gradcli.engine.nn.steps import obstacle
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.random import Generator
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

WORTH_CAPTURE = 48  # tokens; to record a step takes as long as some thirty of them


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
    repetition_penalty: float = 1.0,
    generator: Generator | None = None,
    stop: Collection[int] = (),
    cached: bool = True,
) -> Iterator[int]:
    """Up to `count` tokens, one by one, each picked behind the prompt and those before it.

    `model` takes (1, steps) tokens, at most `context` of them, and gives (1, steps, tokens) logits.
    A token of `stop` ends it, and is not given. `TokenSampler` documents how tokens are
    picked; the rest is as in `generate_rows`.
    """
    sampler = TokenSampler(
        [generator],
        temperature,
        top_k,
        top_p,
        repetition_penalty,
        captured=count >= WORTH_CAPTURE,
    )
    for (token,) in generate_rows(model, prompt, count, context, sampler, cached=cached):
        if token in stop:
            return
        yield token


def generate_rows(
    model: Module,
    prompt: Sequence[int],
    count: int,
    context: int,
    sampler: TokenSampler,
    *,
    cached: bool = True,
    cache_dtype: DType | None = None,
    captured: bool = True,
) -> Iterator[list[int]]:
    """As `generate`, in one batch: a token of each row of the sampler at a time.

    With `cached` earlier steps are not computed again, unless `cache_obstacle` says why they must;
    keys and values are kept in `cache_dtype` or as the layers give them. With `captured` single
    steps are replayed where they are many. Neither changes a row, nor do the other rows.
    """
    if not len(prompt):
        raise OptionError("generate: the prompt needs at least one token")
    if context < 1:
        raise OptionError(f"generate: context must be 1 or more, got {context}")
    with _evaluation(model):
        steps = cached and not obstacle(model)
        capture = captured and count >= WORTH_CAPTURE
        room = min(context, len(prompt) + count)
        cache = KeyValueCache(model, room, cache_dtype, capture) if steps else None
        sampler.see(prompt)
        rows = [list(prompt) for _ in sampler.generators]
        window = -1
        for _ in range(count):
            start = window_start(len(rows[0]), context)
            if cache is None or start != window:
                window, fresh = start, tensor([row[start:] for row in rows])
                if cache is not None:
                    cache.clear()
            fresh = sampler(_logits(cache or model, fresh))
            tokens = [token for (token,) in fresh.tolist()]
            for row, token in zip(rows, tokens, strict=True):
                row.append(token)
            yield tokens


@no_grad()
def _logits(model: Module | KeyValueCache, tokens: Tensor) -> Tensor:
    """Of each step of the tokens what may follow it."""
    logits: Tensor = model(tokens)
    return logits
