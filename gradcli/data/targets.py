"""What the targets of the training split are like, and how those that are values are scaled."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from gradcli import engine
from gradcli.data.facts import DataSpec, TargetFacts, data_facts
from gradcli.data.samples import tensor_of
from gradcli.data.token_windows import TokenWindows
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.wording import join_words, quantity

if TYPE_CHECKING:
    from gradcli.data.dataset import LoadedData, Split

PORTION = 1 << 16  # stored targets in one portion
MOST_NAMES = 10  # classes in a warning
FLOAT32_STEP = 2**-23  # between two numbers, as a share of them
SAMPLES = 256  # samples that are made for their targets


@dataclass(frozen=True, kw_only=True)
class ScaledTargets:
    """The key of datasets whose targets may be values."""

    target_scale: Annotated[
        Literal["standard", "none"] | None,
        "`standard`: the loss is of targets with mean 0 and deviation 1 over the training split; "
        "metrics and predictions stay in their units. Left out: `standard` for values, where loss "
        "and model allow it",
    ] = None

    def regression(self, facts: DataSpec) -> bool:
        """Whether the target is a value or a row of them: no class, no text, no picture."""
        return facts.classes is None and facts.vocab is None and len(facts.target) <= 1


def with_targets(dataset: LoadedData) -> LoadedData:
    """The data with facts that say what the targets of the training split are like."""
    facts = data_facts(dataset.facts, dataset.state)
    if facts is None or facts.targets is not None or "train" not in dataset.splits:
        return dataset
    return replace(dataset, facts=replace(facts, targets=fit_targets(dataset)))


def absent_classes(facts: DataSpec | None, splits: Mapping[str, Split]) -> dict[str, list[str]]:
    """The classes without a sample, by the name of the split; empty for texts."""
    if facts is None or facts.classes is None or facts.target:
        return {}
    names = facts.labels or [str(number) for number in range(facts.classes)]
    absent = {}
    for name, split in splits.items():
        fitted = _fitted(facts).counts if name == "train" else ()
        counts = fitted or class_counts(split, facts.classes)
        absent[name] = [label for label, count in zip(names, counts, strict=True) if not count]
    return {name: labels for name, labels in absent.items() if labels}


def target_notes(dataset: LoadedData, absent: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Warnings: splits that lack classes, and values too close together for float32."""
    for split, classes in absent.items():
        names = join_words(map(repr, classes), MOST_NAMES)
        yield (
            f"warning: the split '{split}' has no sample of {len(classes)} of "
            f"{quantity(dataset.facts.classes or 0, 'class')}: {names}"
        )
    fitted = _fitted(dataset.facts)
    for number, (mean, std) in enumerate(zip(fitted.mean, fitted.std, strict=True)):
        step = abs(mean) * FLOAT32_STEP
        if step > std / 100:
            name = dict(enumerate(dataset.facts.values)).get(number, str(number))
            yield (
                f"warning: target '{name}' lies around {mean:.6g}, where float32 knows numbers to "
                f"{step:.2g} only, too coarse for what it differs by; take an offset off the data"
            )


def _fitted(facts: DataSpec) -> TargetFacts:
    """The facts of the training split's targets; empty for an own dataset."""
    return getattr(facts, "targets", None) or TargetFacts()


def fit_targets(dataset: LoadedData) -> TargetFacts:
    """Facts of the targets of the training split; empty for pictures."""
    split, facts = dataset.splits["train"], dataset.facts
    kinds = facts.classes or facts.vocab
    if kinds is not None:
        return TargetFacts(counts=tuple(class_counts(split, kinds)))
    if isinstance(dataset.source, ScaledTargets) and dataset.source.regression(facts):
        mean = column_means(split)
        squares = column_means(split, around=mean)
        pairs = [_usable(*pair) for pair in zip(mean.tolist(), squares.tolist(), strict=True)]
        return TargetFacts(mean=tuple(m for m, _ in pairs), std=tuple(s for _, s in pairs))
    return TargetFacts()


def _usable(mean: float, square: float) -> tuple[float, float]:
    """Mean and deviation of a column; 0 and 1 where numbers overflow, which the loss will name."""
    if not math.isfinite(mean + square):
        return 0.0, 1.0
    deviation = math.sqrt(square)
    return mean, deviation if deviation > 1e-12 * abs(mean) else 1.0  # less is rounding


def class_counts(split: Split, kinds: int) -> list[int]:
    """How often each class or token occurs among the targets."""
    total = engine.zeros(kinds, dtype=engine.int64)
    for targets in portions(split):
        total = total + engine.bincount(targets.reshape(-1).to(engine.int64), minlength=kinds)
    counts: list[int] = total.tolist()
    return counts


def column_means(split: Split, around: Tensor | None = None) -> Tensor:
    """The mean of each value of a sample's target; or of its squared distance from `around`."""
    total = None
    for targets in portions(split):
        rows = targets.reshape(targets.shape[0], -1).to(engine.float64)
        added = (rows if around is None else (rows - around) ** 2).sum(dim=0)
        total = added if total is None else total + added
    assert total is not None, "a split has at least one sample"
    return total / split.size


def portions(split: Split) -> Iterator[Tensor]:
    """All targets of a split, in portions; each token of a text once."""
    if isinstance(split, TokenWindows):
        yield from split.target_portions()
        return
    tensor = getattr(split, "stored_targets", None)
    if tensor is not None:
        for begin in range(0, tensor.shape[0], PORTION):
            yield tensor[begin : begin + PORTION]
        return
    for begin in range(0, split.size, SAMPLES):
        end = min(begin + SAMPLES, split.size)
        yield split.batch(engine.arange(begin, end, dtype=engine.int64))[1]


@dataclass(frozen=True)
class TargetScale:
    """Targets as a loss sees them, (target - mean) / std by column, and the way back."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def scaled(self, targets: Tensor) -> Tensor:
        """Targets of shape (N,) or (N, K) less their mean, by their deviation."""
        return (targets - self._row(self.mean)) / self._row(self.std)

    def restored(self, outputs: Tensor) -> Tensor:
        """What a model says of N samples, as (N, K) values in the targets' units."""
        values = outputs.to(engine.float32).reshape(outputs.shape[0], -1)
        return values * self._row(self.std) + self._row(self.mean)

    def _row(self, numbers: tuple[float, ...]) -> float | Tensor:
        return numbers[0] if len(numbers) == 1 else tensor_of(array("f", numbers), (len(numbers),))
