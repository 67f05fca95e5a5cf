"""Samplers: in which order samples are taken. A random one is a function of seed and epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import accumulate, islice
from math import isfinite, log
from sys import maxsize
from typing import Any, Generic, TypeVar

from gradcli import engine
from gradcli.engine import Generator
from gradcli.engine.constructor import check_library_constructor
from gradcli.engine.kind import Count
from gradcli.errors import OptionError
from gradcli.wording import quantity

T = TypeVar("T", covariant=True)


class IndexSampler(Generic[T]):
    """Iterates over indices, or over lists of them."""

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        check_library_constructor(cls)

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


Sampler = IndexSampler  # torch.utils.data's name of it


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomOrderSampler(Sampler[int]):
    """A random order: each pass is the next epoch, `set_epoch` goes to another.

    Without a generator the seed is the default generator's, and the order of epoch e is that of
    `gradcli train`.
    """

    def __init__(self, generator: Generator | None) -> None:
        seed = engine.default_generator.initial_seed()
        self.generator = generator or Generator(seed, purpose="shuffle")
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch's."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        self.generator.set_step(self.epoch)
        self.epoch += 1
        return iter(self._draw())

    def _draw(self) -> list[int]:
        raise NotImplementedError


class RandomSampler(RandomOrderSampler):
    """All samples in a random order, or `num_samples` draws with replacement."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: Count | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices a pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def _draw(self) -> list[int]:
        size, count = len(self.data_source), self.num_samples
        if self.replacement:
            indices = engine.randint(0, size, (count,), generator=self.generator)
            return list(indices.tolist())
        order: list[int] = []
        while len(order) < count:
            order += engine.randperm(size, generator=self.generator).tolist()
        return order[:count]


class SubsetRandomSampler(RandomOrderSampler):
    """The given indices in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def _draw(self) -> list[int]:
        order = engine.randperm(len(self.indices), generator=self.generator).tolist()
        return [self.indices[i] for i in order]


class WeightedRandomSampler(RandomOrderSampler):
    """Indices drawn with probabilities that are proportional to `weights`.

    Without replacement the order is that of drawing one after the other (Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir": the largest values of log(u) / weight).
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: Count,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        self.weights = [float(weight) for weight in weights]
        self.num_samples = num_samples
        self.replacement = replacement
        if any(not isfinite(w) or w < 0 for w in self.weights) or not sum(self.weights) > 0:
            raise OptionError("WeightedRandomSampler: weights must be 0 or more, and one above 0")
        possible = sum(weight > 0 for weight in self.weights)
        if not replacement and num_samples > possible:
            raise OptionError(
                f"WeightedRandomSampler: {quantity(num_samples, 'draw')} without replacement from "
                f"{quantity(possible, 'sample')} with a weight above 0"
            )

    def __len__(self) -> int:
        return self.num_samples

    def _draw(self) -> list[int]:
        count = self.num_samples if self.replacement else len(self.weights)
        uniform = engine.rand(count, generator=self.generator, dtype=engine.float64).tolist()
        if self.replacement:
            sums = list(accumulate(self.weights))
            last = bisect_right(sums, sums[-1] * (1 - 2**-53))
            return [min(bisect_right(sums, u * sums[-1]), last) for u in uniform]
        keys = [
            (log(1 - u) / weight, i)
            for i, (u, weight) in enumerate(zip(uniform, self.weights, strict=True))
            if weight > 0
        ]
        return [i for _, i in sorted(keys, reverse=True)[: self.num_samples]]


class BatchSampler(Sampler["list[int]"]):
    """Lists of `batch_size` indices of another sampler; the last one may be shorter."""

    def __init__(self, sampler: Iterable[int], batch_size: Count, drop_last: bool = False) -> None:
        self.sampler: Any = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch's, where the sampler's order depends on it."""
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        most = min(self.batch_size, maxsize)  # islice takes no larger number
        while batch := list(islice(indices, most)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
