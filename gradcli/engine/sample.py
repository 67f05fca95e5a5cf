"""Samples: the inputs with which an op is tried, declared beside it. Pure data, no tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from gradcli.dataclass import dataclass
from gradcli.engine.shape import Shape, numel

if TYPE_CHECKING:
    import random

# The memory of an op's results. "": their own, each element at an offset of its own. "view": always
# an input's. "repeats": an input's, and elements may share an offset, as in expand. "either": an
# input's where possible, otherwise their own.
# "input": the result is the first input, written over.
Shares = Literal["", "view", "repeats", "either", "input"]


@dataclass(frozen=True)
class Input:
    """One input of a sample: its shape, and what numbers to fill it with."""

    shape: Shape
    kind: str = "normal"  # normal positive away distinct index sign bool unit none
    low: float = 0.0
    below: int = 0

    def numbers(self, rng: random.Random) -> list[float]:
        """The elements in row-major order; the same for the same random state."""
        count = numel(self.shape)
        match self.kind:
            case "positive":
                return [rng.uniform(0.2, 3.0) for _ in range(count)]
            case "unit":
                return [rng.uniform(0.05, 0.95) for _ in range(count)]
            case "away":  # no nearer than 0.1 to a kink
                signs = (rng.choice((-1.0, 1.0)) for _ in range(count))
                return [self.low + sign * rng.uniform(0.1, 2.0) for sign in signs]
            case "distinct":  # no ties, and no two closer than a finite difference reaches
                numbers = [0.25 * i - 0.125 * count for i in range(count)]
                rng.shuffle(numbers)
                return numbers
            case "index":
                return [rng.randrange(int(self.low), self.below) for _ in range(count)]
            case "sign":
                return [rng.choice((-1, 1)) for _ in range(count)]
            case "bool":
                return [rng.random() < 0.5 for _ in range(count)]
            case _:
                return [rng.gauss(0.0, 1.0) for _ in range(count)]


@dataclass(frozen=True)
class Sample:
    """One call of an op: its inputs and options."""

    inputs: tuple[Input, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = ", ".join("None" if i.kind == "none" else str(i.shape) for i in self.inputs)
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"({shapes}{options})"


@dataclass(frozen=True)
class Wrong:
    """A call that must be refused, and a part of the sentence that must be said."""

    sample: Sample
    match: str
    dtype: str = "float64"


def sample(*inputs: Shape | Input, **options: object) -> Sample:
    """A call with inputs of these shapes; a bare shape means normally distributed numbers."""
    return Sample(tuple(i if isinstance(i, Input) else Input(i) for i in inputs), options)


def wrong(sample: Sample, match: str, dtype: str = "float64") -> Wrong:
    """A call that must be refused with a sentence that contains `match`."""
    return Wrong(sample, match, dtype)


# What every op of one tensor can be tried with.
SHAPES = ((3, 5), (2, 1, 4), (), (0, 3))
# What every op along one dimension can be tried with.
LINES = (
    sample((3, 5), dim=1),
    sample((3, 5), dim=0),
    sample((2, 7, 3), dim=-2),
    sample((2, 1, 4), dim=-1),
    sample((4, 1), dim=-1),
    sample((), dim=0),
    sample((0, 3), dim=1),
    sample((3, 0), dim=1),
)


def with_empty(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples; where none has a size of 0, the first as well with 0 for its first size."""
    several = tuple(samples)
    shapes = [spec.shape for sample in several for spec in sample.inputs]
    if not shapes or not shapes[0] or any(0 in shape for shape in shapes):
        return several
    first, size = several[0], shapes[0][0]
    inputs = tuple(
        replace(spec, shape=tuple(0 if n == size else n for n in spec.shape))
        for spec in first.inputs
    )
    # The mean of nothing is no number.
    reduces = any("reduction" in sample.options for sample in several)
    return (*several, Sample(inputs, first.options | ({"reduction": "sum"} if reduces else {})))


def with_numbers(make: Callable[[Shape], Input], samples: Sequence[Sample]) -> list[Sample]:
    """The same calls on other numbers."""
    return [replace(s, inputs=tuple(make(spec.shape) for spec in s.inputs)) for s in samples]


def positive(shape: Shape) -> Input:
    """Numbers between 0.2 and 3."""
    return Input(shape, "positive")


def unit(shape: Shape) -> Input:
    """Numbers strictly between 0 and 1."""
    return Input(shape, "unit")


def away_from(shape: Shape, point: float = 0.0) -> Input:
    """Numbers at least 0.1 away from a kink."""
    return Input(shape, "away", low=point)


def distinct(shape: Shape) -> Input:
    """Numbers that all differ, so that the largest is clear."""
    return Input(shape, "distinct")


def index(shape: Shape, below: int, least: int = 0) -> Input:
    """int64 numbers from least to below - 1; no gradient."""
    return Input(shape, "index", low=least, below=below)


def sign(shape: Shape) -> Input:
    """int64 numbers that are 1 or -1; no gradient."""
    return Input(shape, "sign")


def truth(shape: Shape) -> Input:
    """Bools; no gradient."""
    return Input(shape, "bool")


def none() -> Input:
    """An optional input that is left out."""
    return Input((), "none")
