"""What a worker process does: it gets lists of indices and sends batches back."""

from __future__ import annotations

import random
import signal
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from gradcli import engine
from gradcli.data.loader import wire
from gradcli.data.loader.sets import IterableDataset
from gradcli.dataclass import dataclass
from gradcli.engine.device import cpu


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this is: an IterableDataset can tell its share of the samples from it."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


@dataclass(frozen=True)
class WorkerArguments:
    """All that a worker gets when it starts.

    Attributes:
        batched: False where `batch_size=None`: a task is then one index, not a list.
    """

    dataset: Any
    collate: Callable[[Any], Any]
    batched: bool
    drop_last: bool
    init: Callable[[int], None] | None
    id: int
    count: int
    seed: int


_info: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """Which worker runs this code; None in the main process."""
    return _info[0] if _info else None


class EndOfStream:
    """In place of a batch: the stream has no more samples."""


class Fetch:
    """Makes batches of a dataset, in a worker or in the main process."""

    def __init__(
        self, dataset: Any, collate: Callable[[Any], Any], batched: bool, drop_last: bool
    ) -> None:
        self._dataset = dataset
        self._collate = collate
        self._batched = batched
        self._drop_last = drop_last
        self._stream: Iterator[Any] | None = None
        self.sample: Any = None  # the index that the dataset is being asked for

    def begin(self) -> None:
        """A new pass over a stream begins."""
        if isinstance(self._dataset, IterableDataset):
            self._stream = iter(self._dataset)

    def __call__(self, task: Any) -> Any:
        """The batch of these indices, or the next one of the stream; EndOfStream after the last."""
        if self._stream is not None:
            return self._next(len(task) if self._batched else 1)
        many = getattr(self._dataset, "__getitems__", None)
        if self._batched and many:
            return self._collate(many(task))
        samples = [self._item(index) for index in (task if self._batched else [task])]
        return self._collate(samples if self._batched else samples[0])

    def _item(self, index: object) -> Any:
        self.sample = index
        item = self._dataset[index]
        self.sample = None
        return item

    def _next(self, count: int) -> Any:
        assert self._stream is not None
        samples = list(islice(self._stream, count))
        if not samples or (self._drop_last and len(samples) < count):
            return EndOfStream()
        return self._collate(samples if self._batched else samples[0])


def main(tasks: Connection, results: Connection) -> None:
    """Serve until the parent says so or is gone. Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    cpu.set_threads(1)
    try:
        work = _receive_work(tasks, results)
        if work is None:
            return
        _info.append(WorkerInfo(work.id, work.count, work.seed, work.dataset))
        fetch = Fetch(work.dataset, work.collate, work.batched, work.drop_last)
        if work.init is not None:
            _answer(results, (-1, -1), lambda: work.init and work.init(work.id), fetch)
        while (task := tasks.recv()) is not None:
            _serve(work, fetch, task, results)
    except (EOFError, ConnectionError):
        return  # the parent is gone


def _receive_work(tasks: Connection, results: Connection) -> WorkerArguments | None:
    """Receive the work of this worker; None where it cannot be read, which the parent learns."""
    try:
        work: WorkerArguments = tasks.recv()
    except (EOFError, ConnectionError):
        raise
    except Exception as error:
        text = f"cannot read its dataset: {type(error).__name__}: {error}"
        wire.send(results, ("failed", -1, -1), (text, traceback.format_exc()))
        return None
    return work


def _serve(work: WorkerArguments, fetch: Fetch, task: Any, results: Connection) -> None:
    of, number, payload = task
    if number < 0:  # a pass begins; `payload` is its epoch
        engine.manual_seed(work.seed + work.id, step=payload)
        random.seed(work.seed + work.id + (payload << 32))
        _answer(results, (of, -1), fetch.begin, fetch)
    else:
        _answer(results, (of, number), lambda: fetch(payload), fetch)


def _answer(
    results: Connection, of: tuple[int, int], make: Callable[[], object], fetch: Fetch
) -> None:
    """Send what `make` gives, or how it failed and at which sample."""
    fetch.sample = None
    try:
        value = make()
    except Exception as error:
        sample = "" if fetch.sample is None else f" at sample {fetch.sample}"
        batch = f" of batch {of[1]}" if of[1] >= 0 else ""
        text = f"failed{sample}{batch}: {type(error).__name__}: {error}"
        wire.send(results, ("failed", *of), (text, traceback.format_exc()))
        return
    kind = "end" if isinstance(value, EndOfStream) else "batch"
    if of[1] >= 0:
        wire.send(results, (kind, *of), None if kind == "end" else value)
