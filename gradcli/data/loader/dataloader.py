"""DataLoader: batches in the order of a sampler, made here or by worker processes."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from typing import Annotated, Any

from gradcli import engine
from gradcli.data.loader.collate import default_collate, default_convert
from gradcli.data.loader.crew import Crew
from gradcli.data.loader.samplers import BatchSampler, RandomSampler, SequentialSampler
from gradcli.data.loader.sets import IterableDataset
from gradcli.data.loader.worker import EndOfStream, Fetch, WorkerArguments
from gradcli.engine import Generator
from gradcli.engine.constructor import checked_constructor
from gradcli.engine.kind import Count, NotNegative, within
from gradcli.errors import DTypeError, OptionError

Workers = Annotated[int, within("a whole number from 0 to 1024", ge=0, le=1024)]


@checked_constructor
class DataLoader:
    """Iterates over batches of a dataset; each pass is an epoch.

    The order is the sampler's, whatever the number of workers. With `shuffle` it is a function of
    the seed (`seed`, else that of `generator`, else of the default generator) and the epoch, the
    same as in `gradcli train`. `state_dict()` says where a pass stands; a loader that has loaded
    it goes on with the next batch.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: Count | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: Workers = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        timeout: NotNegative = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        generator: Generator | None = None,
        *,
        seed: int | None = None,
        prefetch_factor: Count | None = None,
        persistent_workers: bool = False,
    ) -> None:
        _check_workers(num_workers, prefetch_factor, persistent_workers)
        _check_order(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if seed is not None:
            if generator is not None:
                raise OptionError("DataLoader: seed and generator exclude one another")
            generator = Generator(seed, purpose="shuffle")
        self.dataset = dataset
        self.num_workers = num_workers
        self.timeout = timeout
        self.generator = generator
        self.prefetch_factor = prefetch_factor or 2
        self.persistent_workers = persistent_workers
        self.worker_init_fn = worker_init_fn
        self.drop_last = drop_last
        self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler: Any = sampler if sampler is not None else self._usual_sampler(shuffle)
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and batch_size is not None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        batched = self.batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._crew: Crew | None = None
        self._passes = 0  # begun by this loader: tags what workers send
        self._next = (0, 0)  # epoch and batch that the next pass begins with
        self._at = (0, 0)  # where the newest pass stands

    def _usual_sampler(self, shuffle: bool) -> Any:
        if isinstance(self.dataset, IterableDataset):
            return repeat(0)
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    @property
    def _indices(self) -> Any:
        """The sampler whose items are tasks."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            raise DTypeError("DataLoader: an IterableDataset has no length")
        return len(self._indices)

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._next
        self._passes += 1
        self._next, self._at = (epoch + 1, 0), (epoch, first)
        if hasattr(self._indices, "set_epoch"):
            self._indices.set_epoch(epoch)
        tasks, skip = iter(self._indices), 0
        if isinstance(self.dataset, IterableDataset):
            skip = first  # a stream starts at its first sample
        else:
            tasks = islice(tasks, first, None)
        if self.num_workers:
            source: Iterator[Any] = _FromWorkers(self, tasks, (self._passes, epoch, first - skip))
        else:
            source = self._here(tasks)
        return _LoaderPass(self, islice(source, skip, None), (self._passes, epoch, first))

    def _here(self, tasks: Iterator[object]) -> Iterator[Any]:
        """Batches made in this process."""
        fetch = Fetch(self.dataset, self.collate_fn, self.batch_sampler is not None, self.drop_last)
        fetch.begin()
        for task in tasks:
            batch = fetch(task)
            if isinstance(batch, EndOfStream):
                return
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Where the newest pass stands: seed, epoch, and how many of its batches were given."""
        epoch, position = self._at
        return {"seed": self._seed(), "epoch": epoch, "position": position}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """The next pass goes on where `state_dict` was taken."""
        if set(state_dict) != {"seed", "epoch", "position"}:
            raise OptionError(f"load_state_dict: no state of a DataLoader: {sorted(state_dict)}")
        if state_dict["seed"] != self._seed():
            raise OptionError(
                f"load_state_dict: the state is of seed {state_dict['seed']}, this loader has "
                f"{self._seed()}"
            )
        self._next = self._at = (state_dict["epoch"], state_dict["position"])

    def _seed(self) -> int:
        own = getattr(getattr(self._indices, "sampler", self._indices), "generator", None)
        return (own or self.generator or engine.default_generator).initial_seed()

    def _seed_of_workers(self) -> int:
        """Worker i draws with this seed + i."""
        return self._seed()

    @property
    def passes(self) -> int:
        """How many passes this loader has begun."""
        return self._passes

    def gave(self, number: int, epoch: int, position: int) -> None:
        """A pass has given a batch: only the newest one counts."""
        if number == self._passes:
            self._at = (epoch, position)

    def crew(self) -> Crew:
        """The workers: those of the pass before where they persist."""
        if self._crew is not None:
            return self._crew
        works = [
            WorkerArguments(
                dataset=self.dataset,
                collate=self.collate_fn,
                batched=self.batch_sampler is not None,
                drop_last=self.drop_last,
                init=self.worker_init_fn,
                id=number,
                count=self.num_workers,
                seed=self._seed_of_workers(),
            )
            for number in range(self.num_workers)
        ]
        crew = Crew(works)
        if self.persistent_workers:
            self._crew = crew
            weakref.finalize(self, crew.close)
        return crew

    def dismiss(self, crew: Crew) -> None:
        """End these workers."""
        if crew is self._crew:
            self._crew = None
        crew.close()


class _LoaderPass:
    """One pass over the batches, which tells the loader how far it is."""

    def __init__(
        self, loader: DataLoader, source: Iterator[Any], start: tuple[int, int, int]
    ) -> None:
        self._loader = loader
        self._source = source
        self._number, self._epoch, self._position = start

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._source)
        except StopIteration:
            self._loader.gave(self._number, self._epoch + 1, 0)
            raise
        self._position += 1
        self._loader.gave(self._number, self._epoch, self._position)
        return batch


class _FromWorkers:
    """Batches of workers in the order of their tasks; each worker takes every so-manyth task."""

    def __init__(
        self, loader: DataLoader, tasks: Iterator[Any], start: tuple[int, int, int]
    ) -> None:
        self._loader = loader
        self._tasks = tasks
        self._number, epoch, self._task_number = start
        self._crew = loader.crew()
        self._waiting: deque[int] = deque()  # the worker of each task that was given out
        self._alive = deque(range(len(self._crew)))
        if not loader.persistent_workers:
            self._close = weakref.finalize(self, self._crew.close)
        for worker in range(len(self._crew)):
            self._crew.tell(worker, (self._number, -1, epoch))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._loader.persistent_workers and self._number != self._loader.passes:
            raise OptionError("DataLoader: a newer pass has taken over the workers of this one")
        try:
            return self._answer()
        except StopIteration:
            if not self._loader.persistent_workers:
                self._close()
            raise
        except BaseException:
            self._loader.dismiss(self._crew)
            raise

    def _answer(self) -> Any:
        while True:
            self._give_out()
            if not self._waiting:
                raise StopIteration
            worker = self._waiting.popleft()
            kind, value = self._crew.answer(worker, self._number, self._loader.timeout)
            if kind == "batch":
                return value
            if worker in self._alive:  # its part of the stream is at an end
                self._alive.remove(worker)

    def _give_out(self) -> None:
        """Keep every worker busy, some batches ahead."""
        ahead = self._loader.prefetch_factor * len(self._alive)
        while self._alive and len(self._waiting) < ahead:
            task = next(self._tasks, None)
            if task is None:
                return
            worker = self._alive[0]
            self._alive.rotate(-1)
            self._crew.tell(worker, (self._number, self._task_number, task))
            self._waiting.append(worker)
            self._task_number += 1


def _check_workers(count: int, prefetch: int | None, persistent: bool) -> None:
    if prefetch is not None and not count:
        raise OptionError("DataLoader: prefetch_factor needs num_workers")
    if persistent and not count:
        raise OptionError("DataLoader: persistent_workers needs num_workers above 0")


def _check_order(
    dataset: object,
    batch_size: int | None,
    shuffle: bool,
    sampler: object,
    batch_sampler: object,
    drop_last: bool,
) -> None:
    has_order = shuffle or sampler is not None or batch_sampler is not None
    if isinstance(dataset, IterableDataset) and has_order:
        raise OptionError("DataLoader: an IterableDataset takes no shuffle and no sampler")
    if sampler is not None and shuffle:
        raise OptionError("DataLoader: sampler and shuffle exclude one another")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
        raise OptionError(
            "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
        )
    if batch_size is None and drop_last:
        raise OptionError("DataLoader: drop_last needs a batch_size")
