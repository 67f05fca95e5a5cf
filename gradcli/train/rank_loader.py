"""RankLoader: one rank's batches of a DataLoader, and draws that belong to the batch in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from gradcli.data.loader import (
    BatchSampler,
    DataLoader,
    DistributedBatchSampler,
    DistributedSampler,
    IterableDataset,
)
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor, default_generator
from gradcli.engine.distributed.group import Group
from gradcli.engine.random import Generator
from gradcli.errors import OptionError
from gradcli.wording import quantity

State = tuple[int, int, int]


@dataclass(frozen=True)
class RankBatch:
    """A batch of a prepared loader: how many samples it has, and its update on all ranks."""

    loader: RankLoader
    samples: int
    samples_of_update: int


class Passes:
    """The state that passes of prepared loaders share: the current batch and the generator.

    If an update has several parts, epoch and part decide a part's draws, not the rank: masks are
    those of one process. After the pass the default generator goes on where it was before, the
    same on every rank.

    Attributes:
        newest: the current batch; None between passes.
        on_begin: called with each loader that begins a pass.
    """

    def __init__(self, on_begin: Callable[[RankLoader], None]) -> None:
        self.newest: RankBatch | None = None
        self.on_begin = on_begin
        self._before: dict[object, State] = {}  # of the passes under way, the outermost first

    @property
    def common_state(self) -> State:
        """The state of the default generator, without the draws of batches."""
        return next(iter(self._before.values()), default_generator.get_state())

    def enter(self, key: object, part: RankBatch, epoch: int, number: int) -> None:
        """Begin a batch: number `number` of all ranks in its pass."""
        self.newest = part
        if part.loader.division.parts > 1:
            self._before.setdefault(key, default_generator.get_state())
            stream = Generator(default_generator.initial_seed(), purpose="part")
            default_generator.set_state(stream.key, (epoch << 32) + number, 0)

    def leave(self, key: object) -> None:
        """End a pass, and those that began within it."""
        self.newest = None
        if key in self._before:
            default_generator.set_state(*self._before[key])
            while key in self._before:
                self._before.popitem()


class RankLoader(DataLoader):
    """This rank's share of another loader's batches, as DistributedBatchSampler cuts them.

    `state_dict()` counts samples of all ranks, so that another number of ranks can go on.

    Attributes:
        division: how the batches are divided among the ranks.
    """

    def __init__(
        self, loader: DataLoader, batches: int, group: Group, device: str, passes: Passes
    ) -> None:
        _check(loader)
        self.division = DistributedBatchSampler(
            loader.sampler,
            loader.batch_size or 1,
            loader.drop_last,
            batches=batches,
            num_replicas=group.size,
            rank=group.rank,
        )
        super().__init__(
            loader.dataset,
            batch_sampler=self.division,
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            generator=loader.generator,
            prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
            persistent_workers=loader.persistent_workers,
        )
        self._device = device
        self._passes_of_all = passes

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._next
        self._passes_of_all.on_begin(self)
        return self._deal(super().__iter__(), epoch, first)

    def _deal(self, batches: Iterator[Any], epoch: int, first: int) -> Iterator[Any]:
        key, updates = object(), self.division.updates()
        try:
            for i, batch in enumerate(batches, first):
                update, own = divmod(i, self.division.batches)
                number = self.division.rank * self.division.batches + own
                size = self.division.sizes(updates[update])[number]
                part = RankBatch(self, size, updates[update])
                self._passes_of_all.enter(key, part, epoch, update * self.division.parts + number)
                yield _on(self._device, batch)
        finally:
            self._passes_of_all.leave(key)

    def state_dict(self) -> dict[str, int]:
        """The position of the newest pass: seed, epoch, and the samples of its whole updates."""
        epoch, position = self._at
        samples = sum(self.division.updates()[: position // self.division.batches])
        return {"seed": self._seed(), "epoch": epoch, "samples": samples}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Let the next pass go on where `state_dict` ended, on any number of ranks."""
        if set(state_dict) != {"seed", "epoch", "samples"}:
            raise OptionError(
                f"load_state_dict: no state of a prepared DataLoader: {sorted(state_dict)}"
            )
        samples = state_dict["samples"]
        ends = list(accumulate(self.division.updates(), initial=0))
        if samples not in ends:
            raise OptionError(
                f"load_state_dict: the state is within an update: "
                f"{quantity(samples, 'sample')} of a pass, where an update of "
                f"{quantity(self.division.parts, 'batch')} has {ends[1]}; go on with as many "
                "batches in an update as before"
            )
        position = ends.index(samples) * self.division.batches
        seed, epoch = state_dict["seed"], state_dict["epoch"]
        super().load_state_dict({"seed": seed, "epoch": epoch, "position": position})

    def _seed_of_workers(self) -> int:
        return self._seed() + self.division.rank * self.num_workers


def _check(loader: DataLoader) -> None:
    """Raise unless the loader's batches can be divided among ranks."""
    if isinstance(loader.dataset, IterableDataset):
        raise OptionError(
            "prepare: a DataLoader of an IterableDataset cannot be dealt out; let the dataset "
            "give each rank its samples (engine.distributed.rank()), and do not prepare its loader"
        )
    if isinstance(loader.sampler, DistributedSampler):
        raise OptionError(
            "prepare: the DataLoader has a DistributedSampler, so its samples are dealt out "
            "already; leave one of the two away"
        )
    own = loader.batch_sampler
    if type(own) is not BatchSampler or loader.batch_size is None:
        raise OptionError(
            "prepare: only batches of a sampler and a batch_size can be dealt out; the DataLoader "
            f"has {'no batch_size' if own is None else type(own).__name__}"
        )


def _on(device: str, batch: Any) -> Any:
    """A batch with its tensors on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_on(device, each) for each in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_on(device, each) for each in batch)
    if isinstance(batch, Mapping):
        return {key: _on(device, each) for key, each in batch.items()}
    return batch
