"""Samplers for several ranks: each takes its share of one order, and no sample is taken twice."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from itertools import islice, pairwise
from typing import Any

from gradcli import engine
from gradcli.data.loader.samplers import RandomOrderSampler, Sampler
from gradcli.engine import Generator, distributed
from gradcli.engine.kind import Count, Whole
from gradcli.errors import OptionError
from gradcli.wording import quantity


class DistributedSampler(RandomOrderSampler):
    """Every `num_replicas`th sample of one order, from the `rank`th on, without padding.

    With `shuffle` the order is RandomSampler's of this seed and epoch, else 0, 1, 2, ... The ranks
    together give each sample once: where they do not divide the samples, the first ranks have one
    more, unless `drop_last` leaves out the rest. Each pass is the next epoch; `set_epoch` goes to
    another.

    Args:
        dataset: what has a length.
        num_replicas: how many ranks there are; by default those of the launcher.
        rank: which of them this is.
        shuffle: whether the order is drawn.
        seed: of the order, the same on all ranks; by default the default generator's.
        drop_last: leave out the samples that would give some ranks one more.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: Count | None = None,
        rank: Whole | None = None,
        shuffle: bool = True,
        seed: int | None = None,
        drop_last: bool = False,
    ) -> None:
        super().__init__(None if seed is None else Generator(seed, purpose="shuffle"))
        self.dataset = dataset
        self.num_replicas, self.rank = _resolve_rank("DistributedSampler", num_replicas, rank)
        self.shuffle = shuffle
        self.drop_last = drop_last

    @property
    def total_size(self) -> int:
        """How many samples the ranks take together."""
        size = len(self.dataset)
        return size - size % self.num_replicas if self.drop_last else size

    @property
    def num_samples(self) -> int:
        """How many samples this rank takes."""
        return len(range(self.rank, self.total_size, self.num_replicas))

    def __len__(self) -> int:
        return self.num_samples

    def _draw(self) -> list[int]:
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            order = engine.randperm(size, generator=self.generator).tolist()
        return order[self.rank : self.total_size : self.num_replicas]


class DistributedBatchSampler(Sampler["list[int]"]):
    """One rank's batches of updates that all ranks make together, each sample once.

    An update has `batches` batches of each rank: the next batches of `sampler`, cut as one process
    cuts them; rank 0 takes the first `batches` of them, rank 1 the next. What is left at the end
    of a pass is cut evenly into as many batches; where it has fewer samples than that, the update
    before takes it in. So all ranks have the same number of batches, and no batch is empty.

    Args:
        sampler: gives the same indices in the same order on every rank, and has a length.
        batch_size: samples in a batch.
        drop_last: leave out what does not fill an update.
        batches: of each rank in an update.
        num_replicas: how many ranks there are; by default those of the launcher.
        rank: which of them this is.

    Raises:
        OptionError: when a pass begins that has fewer samples than an update has batches.
    """

    def __init__(
        self,
        sampler: Any,
        batch_size: Count,
        drop_last: bool = False,
        *,
        batches: Count = 1,
        num_replicas: Count | None = None,
        rank: Whole | None = None,
    ) -> None:
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.batches = batches
        self.num_replicas, self.rank = _resolve_rank("DistributedBatchSampler", num_replicas, rank)

    @property
    def parts(self) -> int:
        """The batches of an update, those of all ranks."""
        return self.batches * self.num_replicas

    def updates(self) -> list[int]:
        """The number of samples of each update of a pass."""
        full = self.batch_size * self.parts
        count, rest = divmod(len(self.sampler), full)
        sizes = [full] * count
        if rest >= self.parts and not self.drop_last:
            sizes.append(rest)
        elif rest and not self.drop_last:
            if not sizes:
                raise OptionError(
                    f"{quantity(rest, 'sample')} for {quantity(self.num_replicas, 'rank')} of "
                    f"{quantity(self.batches, 'batch')} each: some would have none; start "
                    f"fewer ranks, or accumulate fewer batches"
                )
            sizes[-1] += rest
        return sizes

    def sizes(self, samples: int) -> list[int]:
        """How many of an update's samples each of its batches has, over all ranks."""
        ends = [samples * part // self.parts for part in range(self.parts + 1)]
        return [end - begin for begin, end in pairwise(ends)]

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch's, where the sampler's order depends on it."""
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.updates()) * self.batches

    def __iter__(self) -> Iterator[list[int]]:
        updates, indices = self.updates(), iter(self.sampler)
        own = range(self.rank * self.batches, (self.rank + 1) * self.batches)
        for samples in updates:
            for part, size in enumerate(self.sizes(samples)):
                batch = list(islice(indices, size))
                if part in own:
                    yield batch


def _resolve_rank(what: str, size: int | None, rank: int | None) -> tuple[int, int]:
    """How many ranks there are and which this is: those of the launcher where nothing is said."""
    size = distributed.size() if size is None else size
    rank = distributed.rank() if rank is None else rank
    if rank >= size:
        raise OptionError(f"{what}: rank {rank} of {quantity(size, 'rank')}; they count from 0")
    return size, rank
