"""A trained model of text goes on with a prompt: characters or bytes, as they are picked."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.facts import DataFacts
from gradcli.data.text import TextSource
from gradcli.dataclass import dataclass
from gradcli.engine.nn.generation import cache_obstacle, generate
from gradcli.errors import ConfigError, DataError
from gradcli.train import precision

if TYPE_CHECKING:
    from gradcli.train.job import Job


@dataclass(frozen=True)
class Sampling:
    """How tokens are picked; see engine.nn.generation.pick."""

    tokens: int
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    step: int = 0


def continued(job: Job, prompt: str, how: Sampling, key: str = "--prompt") -> Iterator[str]:
    """What the model writes behind `prompt`, piece by piece; the same seed gives the same text.

    Errors begin with `key`, which asked for it.
    """
    facts = job.dataset.facts
    if not isinstance(facts, DataFacts) or facts.unit is None:
        raise ConfigError(f"{key}: only models of text go on with a text; this run has other data")
    if not prompt:
        raise ConfigError(f"{key}: give at least one character to go on from")
    made = generate(
        job.model,
        _encoded(prompt, job, key),
        how.tokens,
        facts.input[0],
        temperature=how.temperature,
        top_k=how.top_k,
        top_p=how.top_p,
        generator=engine.Generator(how.seed, purpose="text", step=how.step),
    )
    made = precision.each(job.settings, made)
    source = job.dataset.source
    if isinstance(source, TextSource) and source.unit == "bpe":
        return map(source.bpe.tokenizer.stream(), made)
    if facts.unit == "bytes":
        return _as_text(made)
    return (facts.labels[token] for token in made)


def remark(job: Job) -> str:
    """Why the job's model writes slowly; empty where it computes each step once."""
    reason = cache_obstacle(job.model)
    return reason and f"generates without cache: {reason}"


def _encoded(prompt: str, job: Job, key: str) -> list[int]:
    facts, source = job.dataset.facts, job.dataset.source
    if isinstance(source, TextSource) and source.unit == "bpe":
        return source.bpe.tokenizer.encode(prompt)
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


def _as_text(tokens: Iterator[int]) -> Iterator[str]:
    """Bytes as the characters they make up; what is or makes up none is shown as U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token in tokens:
        yield decoder.decode(bytes([min(token, 255)]))  # 255 is part of no character
    yield decoder.decode(b"", final=True)
