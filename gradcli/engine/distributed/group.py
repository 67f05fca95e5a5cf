"""Group: the processes that train together, and how they exchange memory without waiting for ever.

Messages are not blocking, and whoever waits looks again and again, so that a rank that does not
come can be named. Each look yields the core, for ranks may share it.
"""

from __future__ import annotations

import json
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

from gradcli.errors import LostRankError
from gradcli.wording import join_words, verb

ANSWER_SECONDS = 1.0  # for ranks that wait too to say that they live
_SHORT = 248  # bytes that an all-gather sends with the length, in one round
_LENGTH = struct.Struct("<q")
# The first looks yield nothing: on a busy machine whoever yields is not back for milliseconds.
_ALERT_SECONDS = 1e-4
# Looks that only yield the core: so many seconds, and so many more for each byte on its way,
# because MPI moves large messages while it is polled. Then sleeps, longer and longer.
_AWAKE_SECONDS, _SECONDS_PER_BYTE, _LONGEST_SLEEP = 0.02, 4e-9, 1e-3


class Message(NamedTuple):
    """Bytes for a rank, or from it: a memoryview; messages of one tag arrive in order."""

    rank: int
    memory: memoryview
    tag: int = 0


class Member(NamedTuple):
    """Which process a rank is."""

    host: str
    pid: int


class Group(ABC):
    """Processes, numbered from 0; `rank` is this one.

    Attributes:
        members: host and process of each rank; the host is empty until all have said theirs.
        timeout: seconds after which a rank that does not come is an error.
        note: is called with a sentence once an exchange has lasted `note_seconds`.
        where: what the ranks are at, such as "steps 4,201 to 4,300"; stands in both sentences.
        waited: seconds spent in exchanges so far.
    """

    note_seconds = 30.0

    def __init__(
        self,
        rank: int,
        members: Sequence[Member],
        timeout: float = 300.0,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.rank = rank
        self.members = tuple(members)
        self.timeout = timeout
        self.note = note
        self.where: Callable[[], str] | None = None
        self.waited = 0.0
        self._pulses: dict[int, float] = {}  # when each rank that works by itself gave a sign

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """Each rank for people: "rank 1 on node7 (pid 32149)"."""
        return tuple(
            f"rank {rank} on {host} (pid {pid})" if host else f"rank {rank}"
            for rank, (host, pid) in enumerate(self.members)
        )

    @property
    def local_rank(self) -> int:
        """How many ranks of lower number this host has."""
        return self._hosts()[: self.rank].count(self._hosts()[self.rank])

    @property
    def local_size(self) -> int:
        """How many ranks this host has."""
        return self._hosts().count(self._hosts()[self.rank])

    def _hosts(self) -> list[str]:
        return [member.host for member in self.members]

    # -- what each kind of group does its own way ------------------------------------------------

    @abstractmethod
    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> list[Any]:
        """Begin to send and to receive; a request for each message, in this order."""

    @abstractmethod
    def are_done(self, requests: Sequence[Any]) -> bool:
        """Whether all of them have come to their end; looks once."""

    @abstractmethod
    def open_requests(self, requests: Sequence[Any]) -> list[int]:
        """The numbers of those that have not."""

    @abstractmethod
    def call_out(self) -> None:
        """Tell all others, once, that this rank lives and has waited in vain."""

    @abstractmethod
    def callers(self) -> set[int]:
        """The ranks that have called out so far."""

    @abstractmethod
    def all_reduce(self, source: memoryview, out: memoryview, element: str, what: str) -> None:
        """Write the sum of all ranks' sources to `out`, by the library and in its order.

        Args:
            source: elements of the type `element`, as many on every rank.
            out: other memory of the same size.
            element: "float32", "float64", "int32" or "int64".
            what: the exchange, for E806.
        """

    @abstractmethod
    def abort(self, code: int) -> NoReturn:
        """End all processes of the launcher at once; it exits with this code."""

    def has_pulse(self) -> bool:
        """Whether a thread beside the main one may tell the others that this rank lives."""
        return False

    def send_pulse(self) -> None:
        """Tell all others that this rank lives, and works by itself."""
        raise AssertionError(f"{self.names[self.rank]} has no pulse")

    def pulses(self) -> set[int]:
        """The ranks that have said so since this was asked last."""
        return set()

    # -- exchanges -------------------------------------------------------------------------------

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message], what: str) -> None:
        """Send and receive; returns when memory of both may be used again.

        Args:
            sends: what goes to other ranks.
            receives: memory for what comes, each of the length of its send.
            what: the exchange, for E806.

        Raises:
            LostRankError: E806, a rank did not come within `timeout` seconds.
        """
        if sends or receives:
            messages = [*sends, *receives]
            nbytes = sum(len(message.memory) for message in messages)
            ranks = [{message.rank} for message in messages]
            self.finish(self.start(sends, receives), ranks, nbytes, what)

    def finish(
        self, requests: Sequence[Any], ranks: Sequence[set[int]], nbytes: int, what: str
    ) -> None:
        """Look at requests until they end; `ranks` are those that each of them waits for."""
        began = time.perf_counter()
        self.wait(
            lambda: self.are_done(requests),
            lambda: set().union(*(ranks[number] for number in self.open_requests(requests))),
            nbytes,
            what,
        )
        self.waited += time.perf_counter() - began

    def wait(
        self,
        is_done: Callable[[], bool],
        open_ranks: Callable[[], set[int]],
        nbytes: int,
        what: str,
    ) -> None:
        """Look until something ends that needs the others, who may use another way than this.

        Args:
            is_done: whether it has ended; looks once.
            open_ranks: the ranks that it needs.
            nbytes: how much is on its way.
            what: the exchange, for E806.

        Raises:
            LostRankError: E806, it has not ended within `timeout` seconds, nor has a rank said
                meanwhile that it works by itself.
        """
        began = time.perf_counter()
        awake = _AWAKE_SECONDS + nbytes * _SECONDS_PER_BYTE
        noted = self.note is None
        while not is_done():
            seconds = time.perf_counter() - began
            if seconds < min(awake, self.timeout):
                if seconds > _ALERT_SECONDS:
                    os.sched_yield()
                continue
            time.sleep(min(seconds / 100, _LONGEST_SLEEP))
            self._pulses |= dict.fromkeys(self.pulses(), time.perf_counter())
            silent = time.perf_counter() - max([began, *self._pulses.values()])
            if silent > self.timeout or self.callers():
                raise self._error_of(open_ranks(), silent, what)
            if seconds > self.note_seconds and not noted:
                noted = True
                self._say(open_ranks(), what, began)

    def _say(self, ranks: Iterable[int], what: str, began: float) -> None:
        assert self.note is not None
        at_work = [rank for rank, when in self._pulses.items() if when > began]
        if at_work:
            text = f"{self._list(at_work)} {verb(len(at_work))} at work on data, the others wait"
        else:
            text = (
                f"nothing from {self._list(ranks)} for {self.note_seconds:g} s; "
                f"after {self.timeout:g} s the others end"
            )
        self.note(f"{self._location(what)}: {text}")

    def _error_of(self, ranks: set[int], seconds: float, what: str) -> LostRankError:
        """The error that names who does not even answer, or else those that this rank waits for."""
        location = self._location(what)
        if seconds < self.timeout / 2:  # others have called out already, and were right
            return LostRankError(
                f"{self.names[self.rank]} came too late to ",
                location,
                f": others had waited for {self.timeout:g} s",
            )
        began = time.perf_counter()
        self.call_out()
        silent = set(range(self.size)) - {self.rank}
        while silent and time.perf_counter() - began < ANSWER_SECONDS:
            time.sleep(_LONGEST_SLEEP)
            silent -= self.callers()
        return LostRankError(
            f"nothing from {self._list(silent or ranks)} for {self.timeout:g} s in ", location
        )

    def _location(self, what: str) -> str:
        return what if self.where is None else self.where()

    def _list(self, ranks: Iterable[int]) -> str:
        return join_words(self.names[rank] for rank in sorted(ranks))

    def all_gather(self, data: bytes, what: str) -> list[bytes]:
        """What each rank gives, in order of ranks; their lengths may differ."""
        head = _LENGTH.pack(len(data)) + data[:_SHORT].ljust(_SHORT, b"\0")
        heads = self._gather(head, [len(head)] * self.size, what)
        lengths = [_LENGTH.unpack_from(head)[0] for head in heads]
        rests = [b""] * self.size
        if max(lengths) > _SHORT:
            rests = self._gather(data[_SHORT:], [max(0, n - _SHORT) for n in lengths], what)
        return [
            head[_LENGTH.size :][: min(length, _SHORT)] + rest
            for head, length, rest in zip(heads, lengths, rests, strict=True)
        ]

    def gather_values(self, value: object, what: str) -> list[Any]:
        """The value of each rank, in order of ranks; what JSON has: tuples arrive as lists."""
        return [json.loads(text) for text in self.all_gather(json.dumps(value).encode(), what)]

    def _gather(self, data: bytes, lengths: Sequence[int], what: str) -> list[bytes]:
        """Blocks of lengths that all know, in log2(size) rounds: each doubles what a rank has."""
        order = [(self.rank + i) % self.size for i in range(self.size)]
        ends = list(accumulate((lengths[rank] for rank in order), initial=0))
        memory = memoryview(bytearray(ends[-1]))
        memory[: ends[1]] = data
        here = 1  # blocks of this rank and those behind it
        while here < self.size:
            count = min(here, self.size - here)
            target, source = (self.rank - here) % self.size, (self.rank + here) % self.size
            sends = Message(target, memory[: ends[count]], here)
            receives = Message(source, memory[ends[here] : ends[here + count]], here)
            self.exchange(_unless_empty(sends), _unless_empty(receives), what)
            here += count
        blocks = {rank: bytes(memory[ends[i] : ends[i + 1]]) for i, rank in enumerate(order)}
        return [blocks[rank] for rank in range(self.size)]

    def broadcast(self, data: bytes, what: str, source: int = 0) -> bytes:
        """What rank `source` gives, on all ranks; what the others give is ignored."""
        head = bytearray(_LENGTH.pack(len(data)))
        self.broadcast_into(memoryview(head), what, source)
        body = bytearray(_LENGTH.unpack(head)[0])
        if self.rank == source:
            body[:] = data
        self.broadcast_into(memoryview(body), what, source)
        return bytes(body)

    def broadcast_into(self, memory: memoryview, what: str, source: int = 0) -> None:
        """Overwrite memory with that of rank `source`, of the same length, in log2(size) rounds."""
        own = (self.rank - source) % self.size
        reach = 1
        while reach < self.size:
            message = ((own ^ reach) + source) % self.size, memory, reach
            if own < reach and own + reach < self.size:
                self.exchange(_unless_empty(Message(*message)), (), what)
            elif reach <= own < 2 * reach:
                self.exchange((), _unless_empty(Message(*message)), what)
            reach *= 2

    def barrier(self, what: str) -> None:
        """Return once every rank has called this."""
        self.all_gather(b"", what)


def other_rank(values: Sequence[object]) -> int:
    """The first rank whose value is not that of rank 0; 0 where all ranks have the same."""
    return next((rank for rank, value in enumerate(values) if value != values[0]), 0)


def _unless_empty(message: Message) -> tuple[Message, ...]:
    return (message,) if message.memory else ()


class Alone(Group):
    """The group of one process: there is nobody to exchange anything with."""

    def __init__(self) -> None:
        super().__init__(0, [Member(os.uname().nodename, os.getpid())])

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> list[Any]:
        """There is no other rank."""
        raise AssertionError(f"messages for ranks that do not exist: {[*sends, *receives]}")

    def are_done(self, requests: Sequence[Any]) -> bool:
        """Nothing is on its way."""
        return True

    def open_requests(self, requests: Sequence[Any]) -> list[int]:
        """Nothing is on its way."""
        return []

    def call_out(self) -> None:
        """Nobody listens."""

    def callers(self) -> set[int]:
        """Nobody calls."""
        return set()

    def all_reduce(self, source: memoryview, out: memoryview, element: str, what: str) -> None:
        """The sum over one rank is a copy."""
        out[:] = source

    def abort(self, code: int) -> NoReturn:
        """End this process."""
        raise SystemExit(code)


ALONE = Alone()
