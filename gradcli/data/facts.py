"""What is known of data: before it is loaded, and for new files once a model was trained on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import Any, ClassVar, Literal, Self

from gradcli.dataclass import dataclass
from gradcli.wording import quantity

VERSION = 1  # of DataFacts
_STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}  # for whoever reads the JSON


@dataclass(frozen=True)
class DataSpec:
    """What a config may know of the data before it is loaded.

    Attributes:
        input: shape of one sample, without the batch.
        input_kind: "float", or "index" for whole numbers below `vocab`.
        target: shape of one target: () for a class, (T,) for next tokens, (K,) for regression.
        classes: labels are 0..classes-1; None for regression.
        vocab: tokens are 0..vocab-1; None for float inputs.
        labels: names of the classes, sorted by bytes; () if they have none.
        sizes: samples by the name of the split.
        mixed: while training, a label is probabilities of the classes.
        values: names of the numbers in a target; () if they have none.
        first_label: the lowest label, where classes were counted by their labels.
        unused: samples that the sizes of splits leave over.
        step_back: a sentence on where a time series steps back in time; empty if nowhere.
    """

    input: tuple[int, ...]
    input_kind: Literal["float", "index"]
    target: tuple[int, ...]
    classes: int | None
    vocab: int | None
    labels: tuple[str, ...]
    sizes: dict[str, int]
    mixed: bool = False
    values: tuple[str, ...] = ()
    first_label: int = 0
    unused: int = 0
    step_back: str = ""


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: `fill` stands for a gap, then x becomes (x - shift) / scale."""

    __pydantic_config__: ClassVar = _STRICT

    name: str
    fill: float
    shift: float
    scale: float


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: each one, and its share of the training rows (0 to 1)."""

    __pydantic_config__: ClassVar = _STRICT

    name: str
    shares: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class TargetFacts:
    """What the targets of a training split are like.

    Attributes:
        counts: how often each class or token occurs; () for values.
        mean: of each column of values; () for labels and pictures.
        std: the deviation of the population likewise; 1 for a column that never changes.
    """

    __pydantic_config__: ClassVar = _STRICT

    counts: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


@dataclass(frozen=True)
class DataFacts(DataSpec):
    """All that prediction, generation and evaluation on new data need of a run's own data.

    Checkpoints hold it as JSON. A reader fills in what is of its kind of data.

    Attributes:
        numeric, category: the input columns of a table, in the order of the inputs.
        missing: what a table does with gaps; None for other data.
        stored: shape of one picture or array in its file, before padding; None for other data.
        mean, std: what is subtracted from pictures or arrays and what divides them; one number
            each, or one for each channel.
        array: the name of the inputs in an .npz archive.
        stretches: of a time series in several files, rows that follow each other, by split.
        unit: what a token of a text is; None for other data.
        tokenizer: the sha256 of the tokenizer.json of a text of bpe.
        state: what a dataset of a user's own keeps; JSON values.
        targets: what those of the training split are like; None before they were loaded.
    """

    __pydantic_config__: ClassVar = _STRICT

    version: int = VERSION
    numeric: tuple[NumericColumn, ...] = ()
    category: tuple[CategoryColumn, ...] = ()
    missing: Literal["error", "drop", "mean"] | None = None
    stored: tuple[int, ...] | None = None
    mean: float | tuple[float, ...] = 0.0
    std: float | tuple[float, ...] = 1.0
    array: str | None = None
    unit: Literal["bytes", "characters", "bpe"] | None = None
    state: dict[str, Any] = field(default_factory=dict)
    targets: TargetFacts | None = None
    stretches: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tokenizer: str | None = None

    @classmethod
    def of(cls, facts: DataSpec, **more: Any) -> Self:
        """The facts with what a reader knows besides."""
        return cls(**{**vars(facts), **more})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the input columns of a table."""
        numeric = tuple(column.name for column in self.numeric)
        return numeric + tuple(column.name for column in self.category)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Fields that contradict others, each with what is expected."""
        if self.version < 1:
            yield "version", "expected at least 1"
        yield from _of_sizes(self)
        if self.targets is not None:
            yield from _of_targets(self, self.targets)
        if self.missing is not None:
            yield from _of_table(self)
        if self.stored is not None:
            yield from _of_images(self, self.stored)
        if self.unit is not None:
            yield from _of_text(self)


def data_facts(facts: DataSpec | None, state: Mapping[str, Any]) -> DataFacts | None:
    """The facts of loaded data as a checkpoint holds them; `state` is of an own dataset."""
    if facts is None or isinstance(facts, DataFacts):
        return facts
    return DataFacts.of(facts, state=dict(state))


def _of_sizes(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if not facts.input or min(facts.input) < 1:
        yield "input", "expected one or more sizes of at least 1"
    if min(facts.target, default=1) < 1:
        yield "target", "expected sizes of at least 1"
    if "train" not in facts.sizes or min(facts.sizes.values()) < 1:
        yield "sizes", "expected at least 1 sample in each split, of which one is train"
    for name, count in (("classes", facts.classes), ("vocab", facts.vocab)):
        if count is not None and count < 1:
            yield name, "expected at least 1"
    if facts.labels and len(facts.labels) != facts.classes:
        yield "labels", f"expected one for each of {quantity(facts.classes or 0, 'class')}"
    if (facts.input_kind == "index") != (facts.vocab is not None):
        yield "vocab", "expected a number where inputs are indices, and only there"


def _of_targets(facts: DataFacts, targets: TargetFacts) -> Iterator[tuple[str, str]]:
    kinds = facts.classes or facts.vocab or 0
    if targets.counts and (len(targets.counts) != kinds or min(targets.counts) < 0):
        yield "targets", f"expected {kinds} counts of at least 0"
    columns = math.prod(facts.target)
    for numbers in (targets.mean, targets.std):
        if numbers and len(numbers) != columns:
            yield (
                "targets",
                f"expected a mean and a deviation for each of {quantity(columns, 'value')}",
            )
    if min(targets.std, default=1.0) <= 0 or len(targets.std) != len(targets.mean):
        yield "targets", "expected deviations above 0, one for each mean"


def _of_table(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if len(set(facts.columns)) < len(facts.columns):
        yield "numeric", "expected each column once, in `numeric` or in `category`"
    if any(not column.scale > 0 for column in facts.numeric):
        yield "numeric", "expected scales above 0"
    if any(len(dict(column.shares)) < len(column.shares) for column in facts.category):
        yield "category", "expected each category once"
    width = len(facts.numeric) + sum(len(column.shares) for column in facts.category)
    series = len(facts.input) == 2 and width in facts.input  # one size is that of a window
    if facts.input != (width,) and not series:
        yield "input", f"expected [{width}], a number for each column and category"


def _of_images(facts: DataFacts, shape: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    same_kind = len(shape) == len(facts.input) and shape[:1] == facts.input[:1]
    fits = same_kind and all(0 < a <= b for a, b in zip(shape, facts.input, strict=True))
    if not (shape == facts.input or (fits and len(shape) == 3)):
        yield "stored", "expected the shape in `input`, or one that can be padded to it"
    for name, value in (("mean", facts.mean), ("std", facts.std)):
        if isinstance(value, tuple) and (len(value),) != facts.input[:1]:
            yield name, "expected one number, or one for each channel"
    if not min(facts.std if isinstance(facts.std, tuple) else (facts.std,), default=0) > 0:
        yield "std", "expected numbers above 0"


def _of_text(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if len(facts.input) != 1:
        yield "input", "expected one size, the tokens of a sample"
    if facts.target != facts.input:
        yield "target", "expected as many tokens as in `input`"
    if facts.vocab is None or facts.vocab != facts.classes:
        yield "vocab", "expected as many as classes"
    yield from _OF_TOKENS[facts.unit or "bytes"](facts)


def _of_bpe(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if facts.tokenizer is None:
        yield "tokenizer", "expected the hash of one for a text of bpe"


def _of_bytes(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if facts.vocab is not None and facts.vocab < 256:
        yield "vocab", "expected at least 256 for a text of bytes"


def _of_characters(facts: DataFacts) -> Iterator[tuple[str, str]]:
    if len(set(facts.labels)) != facts.vocab or any(len(label) != 1 for label in facts.labels):
        yield "labels", "expected each character of the vocabulary once"


_OF_TOKENS = {"bpe": _of_bpe, "bytes": _of_bytes, "characters": _of_characters}
