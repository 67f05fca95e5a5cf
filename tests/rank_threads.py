"""Ranks without MPI: threads of one process, whose messages go through queues."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar

from gradcli.engine.distributed.group import Group, Member, Message

T = TypeVar("T")
FORMATS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}


class Ended(BaseException):
    """What `abort` raises in place of an end of the process."""


@dataclass
class Network:
    """Queues between ranks; `loses(source, target)` says whether a message is lost."""

    size: int
    loses: Callable[[int, int], bool] = lambda source, target: False
    queues: dict[Any, SimpleQueue[bytes]] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    signs: dict[int, set[int]] = field(default_factory=dict)  # of life: for each rank of whom
    sent: list[int] = field(default_factory=list)  # bytes of each message

    def queue(self, source: int, target: int, tag: int) -> SimpleQueue[bytes]:
        """One for both threads that ask, also where they ask at once."""
        return self.queues.setdefault((source, target, tag), SimpleQueue())


@dataclass
class Request:
    """A message that may still have to come."""

    queue: SimpleQueue[bytes] | None
    memory: memoryview

    def is_done(self) -> bool:
        if self.queue is None:
            return True
        try:
            data = self.queue.get_nowait()
        except Empty:
            return False
        assert len(data) == len(self.memory)
        self.memory[:] = data
        self.queue = None
        return True


class ThreadGroup(Group):
    """One rank of a network."""

    def __init__(self, network: Network, rank: int, timeout: float = 60.0) -> None:
        members = [Member(f"node{rank // 2}", 1000 + rank) for rank in range(network.size)]
        super().__init__(rank, members, timeout)
        self.network = network

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> list[Any]:
        for rank, memory, tag in sends:
            assert rank != self.rank
            self.network.sent.append(len(memory))
            if not self.network.loses(self.rank, rank):
                self.network.queue(self.rank, rank, tag).put(bytes(memory))
        arriving = [
            Request(self.network.queue(m.rank, self.rank, m.tag), m.memory) for m in receives
        ]
        return [*(Request(None, m.memory) for m in sends), *arriving]

    def are_done(self, requests: Sequence[Any]) -> bool:
        return not self.open_requests(requests)

    def open_requests(self, requests: Sequence[Any]) -> list[int]:
        return [i for i, request in enumerate(requests) if not request.is_done()]

    def call_out(self) -> None:
        self.network.calls.add(self.rank)

    def callers(self) -> set[int]:
        return self.network.calls - {self.rank}

    def has_pulse(self) -> bool:
        return True

    def send_pulse(self) -> None:
        for rank in set(range(self.size)) - {self.rank}:
            self.network.signs.setdefault(rank, set()).add(self.rank)

    def pulses(self) -> set[int]:
        return self.network.signs.pop(self.rank, set())

    def all_reduce(self, source: memoryview, out: memoryview, element: str, what: str) -> None:
        rows = [array(FORMATS[element], data) for data in self.all_gather(bytes(source), what)]
        total = array(FORMATS[element], [sum(column) for column in zip(*rows, strict=True)])
        out[:] = total.tobytes()

    def abort(self, code: int) -> NoReturn:
        raise Ended(code)


def on_ranks(
    size: int,
    task: Callable[[ThreadGroup], T],
    timeout: float = 60.0,
    network: Network | None = None,
) -> list[T]:
    """What the task gives on each rank; its first error is raised."""
    between = network or Network(size)
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(task, ThreadGroup(between, rank, timeout)) for rank in range(size)]
        return [future.result() for future in futures]


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Return once it holds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)
