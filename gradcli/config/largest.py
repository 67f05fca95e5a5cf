"""The largest batch whose training fits into some memory, by rehearsals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gradcli.config.rehearsal import rehearse_training
from gradcli.dataclass import dataclass
from gradcli.errors import GradcliError
from gradcli.train.job import steps_per_epoch

if TYPE_CHECKING:
    from gradcli.config.load import Config

PARTS = 64  # of a batch, at most: more take long to rehearse
GUESSES = 8  # by a straight line, before the rest is halved


@dataclass(frozen=True)
class Largest:
    """How many samples a batch, or a part of one, can have.

    Attributes:
        key: `train.micro_batch` where the config has one, else `train.batch`.
        size: 0 where not even the smallest fits.
        least: the smallest size that was looked at.
        most: whether nothing but the data keeps it from being larger.
    """

    key: str
    size: int
    least: int
    most: bool

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def largest_batch(config: Config, free: int) -> Largest | None:
    """The largest batch or part that fits into so many bytes; None where that is not known."""
    train, samples = config.train, config.facts.sizes["train"]
    cut = train.micro_batch is not None
    name = "micro_batch" if cut else "batch"
    top = min(train.batch, samples) if cut else samples

    least = -(-train.batch // PARTS) if cut else 1

    def need(size: int) -> int:
        return rehearse_training(with_batch(config, name, size))[0].most

    try:
        size = _largest(need, free, least, top)
    except (GradcliError, RecursionError):
        return None
    return Largest(f"train.{name}", size, least, size == top)


def with_batch(config: Config, name: str, size: int) -> Config:
    """The config with another batch or part, as it would be loaded."""
    change: dict[str, Any] = {name: size}
    train = replace(config.train, **change)
    if "log_every" not in config.stated["train"]:
        train = replace(train, log_every=None)
    steps = config.steps
    if train.steps is None:
        steps = (train.epochs or 0) * steps_per_epoch(train, config.facts.sizes["train"])
    return replace(config, train=train, steps=steps)


def _largest(need: Callable[[int], int], free: int, least: int, top: int) -> int:
    """The largest size from `least` to `top` that needs no more than `free`; 0 where none does.

    What is needed grows with the size, but for sizes that divide the samples without a rest. The
    way there depends on nothing else, so that whoever asks is told the same.
    """
    low, high = least - 1, top + 1
    below, above = 0, need(top)
    if above <= free:
        return top
    guesses = 0
    while high - low > 1:
        guesses += 1
        step = (free - below) * (high - low) // (above - below)
        middle = low + step if below and guesses <= GUESSES else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1) if below else max(least, high // 64)
        total = need(middle)
        if total <= free:
            low, below = middle, total
        else:
            high, above = middle, total
    return low if below else 0
