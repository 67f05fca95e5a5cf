"""Generate text from a prompt with a trained model, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.facts import DataFacts
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.nn.generation import WORTH_CAPTURE, cache_obstacle, generate_rows
from gradcli.engine.nn.sampling import TokenSampler
from gradcli.errors import ConfigError, DataError, DeviceError
from gradcli.free_memory import free_memory
from gradcli.train import precision
from gradcli.train.spelling import Speller, decoder_of, is_bpe
from gradcli.wording import byte_size

if TYPE_CHECKING:
    from gradcli.train.job import Job


@dataclass(frozen=True)
class Sampling:
    """How to sample tokens (see engine.nn.sampling.Sampler), how many texts, and what ends one.

    Text i has the seed `seed` + i. `cache_bf16` stores keys and values in bfloat16. The texts of
    `stop` and the tokens of `stop_token` end a text, and so does the end-of-document token unless
    `ignore_end` is set.
    """

    tokens: int
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    step: int = 0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token: tuple[str, ...] = ()
    ignore_end: bool = False
    samples: int = 1
    cache_bf16: bool = False


class Texts:
    """The continuations of `prompt` that a model writes: `how.samples` texts, in one batch.

    Iterate over it once; each item has a piece of each text. The same seed gives the same text,
    whatever the rest of the batch. Errors begin with `key`, the option that requested the texts.
    """

    def __init__(self, job: Job, prompt: str, how: Sampling, key: str = "--prompt") -> None:
        facts = job.dataset.facts
        if not isinstance(facts, DataFacts) or facts.unit is None:
            raise ConfigError(
                f"{key}: only models of text go on with a text; this run has other data"
            )
        if not prompt:
            raise ConfigError(f"{key}: give at least one character to go on from")
        if how.cache_bf16 and cache_note(job):
            raise ConfigError(f"--cache-bf16: this model {cache_note(job)}")
        source = job.dataset.source
        tokens, ends = _encoded(prompt, job, key), _stop_tokens(job, how)
        _check_memory(job, how, len(tokens))
        self._spellers = [
            Speller(decoder_of(facts, source), how.stop, ends) for _ in range(how.samples)
        ]
        self._settings = job.settings
        sampler = TokenSampler(
            [
                engine.Generator(how.seed + number, purpose="text", step=how.step)
                for number in range(how.samples)
            ],
            how.temperature,
            how.top_k,
            how.top_p,
            how.repetition_penalty,
            captured=job.settings.capture and how.tokens >= WORTH_CAPTURE,
        )
        self._rows = generate_rows(
            job.model,
            tokens,
            how.tokens,
            facts.input[0],
            sampler,
            cache_dtype=engine.bfloat16 if how.cache_bf16 else None,
            captured=job.settings.capture,
        )

    @property
    def tokens(self) -> int:
        """How many tokens all texts have so far, each up to its end."""
        return sum(speller.tokens for speller in self._spellers)

    def __iter__(self) -> Iterator[list[str]]:
        spellers = self._spellers
        for tokens in precision.each(self._settings, self._rows):
            yield [speller.add(token) for speller, token in zip(spellers, tokens, strict=True)]
            if all(speller.at_end for speller in spellers):
                return
        yield [speller.end() for speller in spellers]


def continued(job: Job, prompt: str, how: Sampling, key: str = "--prompt") -> Iterator[str]:
    """The one text of `Texts`, piece by piece."""
    texts = Texts(job, prompt, how, key)
    return (piece for (piece,) in texts)


def cache_note(job: Job) -> str:
    """Why the job's model writes slowly; empty where it computes each step once."""
    reason = cache_obstacle(job.model)
    return reason and f"generates without cache: {reason}"


def _check_memory(job: Job, how: Sampling, prompt: int) -> None:
    """Check that the keys, values and logits of all samples fit in memory.

    Raises:
        DeviceError: they do not fit.
    """
    facts = job.dataset.facts
    layers = [layer for layer in job.model.modules() if isinstance(layer, nn.SelfAttention)]
    numbers = sum(2 * layer.kv_heads * layer.head_dim for layer in layers)
    steps = min(facts.input[0], prompt + how.tokens)
    bytes_each = steps * numbers * (2 if how.cache_bf16 else 4) + 8 * prompt * (facts.vocab or 0)
    free = free_memory() if next(job.model.parameters()).device == "cpu" else None
    if free is None or how.samples * bytes_each <= free:
        return
    raise DeviceError(
        f"--samples {how.samples}: keys, values and logits of that many take about "
        f"{byte_size(how.samples * bytes_each)}, and {byte_size(free)} are free; "
        f"{free // bytes_each} would fit",
        code="E402",
    )


def _stop_tokens(job: Job, how: Sampling) -> frozenset[int]:
    """The tokens that end a text."""
    source = job.dataset.source
    if not is_bpe(source):
        if how.stop_token:
            raise ConfigError(
                "--stop-token: this model has no tokenizer; --stop TEXT ends its texts"
            )
        return frozenset()
    tokenizer = source.bpe.tokenizer
    tokens = {tokenizer.number_of(token, "--stop-token") for token in how.stop_token}
    if tokenizer.end is not None and not how.ignore_end:
        tokens.add(tokenizer.end)
    return frozenset(tokens)


def _encoded(prompt: str, job: Job, key: str) -> list[int]:
    facts, source = job.dataset.facts, job.dataset.source
    if is_bpe(source):
        tokens = source.bpe.tokenizer.encode(prompt)
        if not tokens:
            raise DataError(f"{key}: the tokenizer has no token for this text", code="E304")
        return tokens
    assert isinstance(facts, DataFacts), "a text has them"
    if facts.unit == "bytes":
        return list(prompt.encode())
    index = {label: i for i, label in enumerate(facts.labels)}
    unknown = next((c for c in prompt if c not in index), None)
    if unknown is not None:
        raise DataError(
            f"{key}: the character {unknown!r} did not occur in the training text",
            code="E304",
        )
    return [index[c] for c in prompt]
