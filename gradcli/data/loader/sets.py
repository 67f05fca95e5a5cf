"""Datasets: what has a length and gives sample i, or what gives one sample after the other."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gradcli import engine
from gradcli.data.hashes import look_out
from gradcli.engine import Generator, Tensor
from gradcli.engine.argument import check_arguments
from gradcli.engine.constructor import checked_constructor
from gradcli.engine.kind import format_value
from gradcli.errors import OptionError, OptionTypeError, RangeError, ShapeError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data.dataset import Split

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Gives sample number `index`; a subclass also has __len__, unless a sampler does without."""

    def __getitem__(self, index: int) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Gives its samples in an order of its own; each worker iterates over a copy of it."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class StackedSamples(Sequence["tuple[Tensor, ...]"]):
    """Samples that lie side by side already: default_collate takes the tensors as they are."""

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


@checked_constructor
class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Sample i is the tuple of row i of each tensor."""

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or any(not t.shape or len(t) != len(tensors[0]) for t in tensors):
            shapes = ", ".join(str(t.shape) for t in tensors) or "none"
            raise ShapeError(f"TensorDataset: takes tensors of one length, got shapes {shapes}")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: Sequence[int]) -> StackedSamples:
        rows = _positions("TensorDataset", indices, len(self))
        return StackedSamples(
            tuple(engine.index_select(tensor, 0, rows) for tensor in self.tensors)
        )

    def __len__(self) -> int:
        return len(self.tensors[0])


@checked_constructor
class ConcatDataset(Dataset[Any]):
    """One dataset behind the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise OptionError("ConcatDataset: takes at least one dataset")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise OptionError("ConcatDataset: an IterableDataset has no numbered samples")
        self.cumulative_sizes = list(accumulate(map(_length, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise RangeError(f"ConcatDataset: index {index} of {quantity(len(self), 'sample')}")
        which = bisect_right(self.cumulative_sizes, at)
        return self.datasets[which][at - (self.cumulative_sizes[which - 1] if which else 0)]


@checked_constructor
class Subset(Dataset[Any]):
    """The samples of another dataset at these indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        at = [self.indices[index] for index in indices]
        many = getattr(self.dataset, "__getitems__", None)
        items: Sequence[Any] = many(at) if many else [self.dataset[index] for index in at]
        return items

    def __len__(self) -> int:
        return len(self.indices)


class SplitDataset(Dataset["tuple[Tensor, Tensor]"]):
    """The samples of a split that a config's `data:` has loaded: (input, target)."""

    def __init__(self, split: Split) -> None:
        self.split = split

    def __len__(self) -> int:
        return self.split.size

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        sample: tuple[Tensor, Tensor] = self.__getitems__([index])[0]
        return sample

    def __getitems__(self, indices: Sequence[int]) -> StackedSamples:
        batch = self.split.batch(_positions("SplitDataset", indices, len(self)))
        look_out()  # zeros of a mapped file that was cut off are no samples
        return StackedSamples(batch)


def _positions(what: str, indices: Sequence[int], size: int) -> Tensor:
    """Indices as positions from 0 on."""
    for index in indices:
        if not -size <= index < size:
            raise RangeError(f"{what}: index {index} of {quantity(size, 'sample')}")
    return engine.tensor([i + size if i < 0 else i for i in indices], dtype=engine.int64)


def _length(dataset: Any) -> int:
    if not hasattr(dataset, "__len__"):
        raise OptionTypeError(f"a dataset must have a length here, got {format_value(dataset)}")
    return len(dataset)


@check_arguments
def random_split(
    dataset: Any,
    lengths: Sequence[int | float],
    generator: Generator | None = None,
) -> list[Subset]:
    """Parts of these lengths, or of these fractions, in a random order that `generator` gives."""
    counts = _counts(lengths, _length(dataset))
    order = engine.randperm(sum(counts), generator=generator).tolist()
    ends = list(accumulate(counts))
    return [
        Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)
    ]


def _counts(lengths: Sequence[int | float], total: int) -> list[int]:
    """Whole numbers that add up to `total`; what fractions leave goes to the first parts."""
    if not lengths or any(not each >= 0 for each in lengths):
        raise OptionError(f"random_split: takes lengths of 0 or more, got {list(lengths)}")
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        counts = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        return counts
    if sum(lengths) != total or any(not isinstance(each, int) for each in lengths):
        raise OptionError(
            f"random_split: lengths {list(lengths)} must add up to the "
            f"{quantity(total, 'sample')}, or to 1"
        )
    return [int(each) for each in lengths]
