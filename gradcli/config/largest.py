"""The largest batch whose training fits into some memory, by rehearsals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gradcli.config.rehearsal import rehearse_training
from gradcli.dataclass import dataclass
from gradcli.errors import GradcliError
from gradcli.train.job import steps_per_epoch

if TYPE_CHECKING:
    from gradcli.config.load import Config

PARTS = 64  # of a batch, at most: more take long to rehearse
GUESSES = 12  # by what is fitted, before the rest is halved
NEAR = 4  # power by which a rehearsal counts less, the further it is from what is free
RIDGE = 1e-9  # for fewer rehearsals than unknowns


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


def largest_batch(
    config: Config, free: int, needs: Mapping[int, int] | None = None, device: str = "cpu"
) -> Largest | None:
    """The largest batch, or part of one, that fits into `free` bytes; None if that is unknown.

    `needs` has the bytes of sizes that were already rehearsed.
    """
    train, samples = config.train, config.facts.sizes["train"]
    cut = train.micro_batch is not None
    name = "micro_batch" if cut else "batch"
    top = min(train.batch, samples) if cut else samples
    least = -(-train.batch // PARTS) if cut else 1
    rehearsed = dict(needs or {})

    def need(size: int) -> int:
        if size not in rehearsed:
            trial = with_batch(config, name, size)
            rehearsed[size] = rehearse_training(trial, device=device, free=free)[0].most
        return rehearsed[size]

    try:
        size = Search(need, _programs(config), free, least, top).largest()
    except (GradcliError, RecursionError):
        return None
    return Largest(f"train.{name}", size, least, size == top)


def with_batch(config: Config, name: str, size: int) -> Config:
    """The config with another batch or micro-batch size, as if it were loaded so."""
    change: dict[str, Any] = {name: size}
    train = replace(config.train, **change)
    if "log_every" not in config.explicit["train"]:
        train = replace(train, log_every=None)
    steps = config.steps
    if train.steps is None:
        steps = (train.epochs or 0) * steps_per_epoch(train, config.facts.sizes["train"])
    return replace(config, train=train, steps=steps)


def _programs(config: Config) -> Callable[[int], tuple[int, ...]]:
    """For a batch size, the samples in all programs of the steps and of the evaluations.

    The memory of a run is nearly linear in these: every program has its own arena, which grows with
    its batch, and a smaller last batch has a program of its own.
    """
    train, sizes = config.train, config.facts.sizes

    def of(samples: int, batch: int) -> int:
        return (batch if batch <= samples else 0) + samples % batch

    if train.micro_batch is not None:
        return lambda size: (of(train.batch, size),)
    whole = train.drop_last
    evaluations = [sizes[name] for name in ("val", "test") if name in sizes]

    def programs(size: int) -> tuple[int, ...]:
        steps = size if whole else of(sizes["train"], size)
        return steps, sum(of(samples, size) for samples in evaluations)

    return programs


class Search:
    """Rehearsals that lead to the largest size from `least` to `top` that needs at most `free`.

    A guess is the largest size that fits by what is fitted on the rehearsals so far; it ends where
    one size fits and the next one does not. The way there depends on nothing else, so that whoever
    asks is told the same.
    """

    def __init__(
        self,
        need: Callable[[int], int],
        programs: Callable[[int], tuple[int, ...]],
        free: int,
        least: int,
        top: int,
    ) -> None:
        self._need, self._programs = need, programs
        self._free, self._least, self._top = free, least, top
        self._needs: dict[int, int] = {}

    def largest(self) -> int:
        """The size; 0 where none fits."""
        first = max(self._least, self._top // 64)
        second = first * self._free // self._rehearse(first)
        self._rehearse(min(max(second, self._least), self._top))
        for _ in range(GUESSES):
            size = self._guess()
            if size >= self._least and not self._fits(size):
                continue
            if size == self._top or not self._fits(size + 1):
                return size if size >= self._least else 0
        return self._halved()

    def _rehearse(self, size: int) -> int:
        if size not in self._needs:
            self._needs[size] = self._need(size)
        return self._needs[size]

    def _fits(self, size: int) -> bool:
        return self._rehearse(size) <= self._free

    def _guess(self) -> int:
        """The largest size that fits, as far as is known; one less than the least if none does."""
        constant, *factors = self._factors()
        room = (self._free - constant) / factors[0] if factors[0] > 0 else self._top
        fitting = [size for size in self._needs if self._fits(size)]
        begin = min(self._top, max([int(room), *fitting]))
        for size in range(begin, self._least - 1, -1):
            total: float = constant
            for factor, part in zip(factors, self._programs(size), strict=True):
                total += factor * part
            if self._needs.get(size, total) <= self._free:
                return size
        return self._least - 1

    def _factors(self) -> list[float]:
        """A constant and what each sample of a program takes, by the rehearsals near what is free.

        Where these are too few to tell programs apart, a sample takes the same in all of them.
        """
        apart, alike = [], []
        for size, total in self._needs.items():
            parts = self._programs(size)
            weight = min(total / self._free, self._free / total) ** NEAR / total
            apart.append([weight * number for number in (1, *parts, total)])
            alike.append([weight * number for number in (1, sum(parts), total)])
        factors = least_squares(apart)
        if min(factors[1:]) < 0:
            constant, slope = least_squares(alike)
            factors = [constant, *[slope] * (len(factors) - 1)]
        return factors

    def _halved(self) -> int:
        """Between a size that fits and a larger one that does not, where guesses lead nowhere."""
        low = max((size for size in self._needs if self._fits(size)), default=self._least - 1)
        high = min((size for size in self._needs if size > low), default=self._top + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(middle):
                low = middle
            else:
                high = middle
        return low if low >= self._least else 0


def least_squares(rows: Sequence[Sequence[float]]) -> list[float]:
    """The factors of all columns but the last that give the last one, as far as they can."""
    count = len(rows[0]) - 1
    table = [[sum(row[i] * row[j] for row in rows) for j in range(count + 1)] for i in range(count)]
    for i in range(count):
        table[i][i] = table[i][i] * (1 + RIDGE) or 1.0
    for i, pivot in enumerate(table):
        for row in table[i + 1 :]:
            factor = row[i] / pivot[i]
            row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    factors = [0.0] * count
    for i in reversed(range(count)):
        rest = sum(table[i][j] * factors[j] for j in range(i + 1, count))
        factors[i] = (table[i][count] - rest) / table[i][i]
    return factors
