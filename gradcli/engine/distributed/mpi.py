"""The group over MPI, by mpi4py, which is imported when `version` or `join` first needs it."""

from __future__ import annotations

import fcntl
import os
import stat
import termios
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from gradcli.engine.distributed.group import Group, Member, Message
from gradcli.errors import LostRankError

READ_SECONDS = 1.0  # for a launcher to read the last words of a rank
_ELEMENTS = {"float32": "FLOAT", "float64": "DOUBLE", "int32": "INT32_T", "int64": "INT64_T"}


def version() -> str:
    """Of the MPI, as distributed.mpi_version gives it."""
    name, version = _mpi().get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


def _mpi() -> Any:
    """The module mpi4py.MPI. It begins MPI when asked, not when loaded, and ends it at the exit."""
    rc = import_module("mpi4py").rc
    rc.initialize, rc.finalize = False, True
    try:
        return import_module("mpi4py.MPI")
    except RuntimeError as error:  # it loads the library itself, and says so in several lines
        raise ImportError(" ".join(str(error).split())) from None


def wait_for_reader(*files: int) -> None:
    """Return once nobody has to read any more from these files as far as they are pipes.

    It takes READ_SECONDS at most, for a launcher may be stopped itself.
    """
    unread, limit = bytearray(4), time.monotonic() + READ_SECONDS
    for file in files:
        with suppress(OSError):
            while stat.S_ISFIFO(os.fstat(file).st_mode) and time.monotonic() < limit:
                fcntl.ioctl(file, termios.FIONREAD, unread)
                if not any(unread):
                    break
                time.sleep(1e-3)


class MPIGroup(Group):
    """All processes of the launcher."""

    def __init__(self, timeout: float, note: Callable[[str], None] | None) -> None:
        self._mpi = _mpi()
        if not self._mpi.Is_initialized():
            with warnings.catch_warnings():  # of another MPI's launcher; the size tells that too
                warnings.simplefilter("ignore", RuntimeWarning)
                self._mpi.Init_thread(self._mpi.THREAD_SERIALIZED)
        world = self._mpi.COMM_WORLD
        self._messages, self._calls, self._signs = world.Dup(), world.Dup(), world.Dup()
        self._signs_made: list[Any] = []
        self._callers: set[int] = set()
        self._calls_made: list[Any] = []
        self._statuses: list[Any] = []  # of the requests that were tested last
        super().__init__(world.rank, [Member("", 0)] * world.size, timeout, note)
        own = f"{os.getpid()} {os.uname().nodename}".encode()
        members = [text.decode().split(" ", 1) for text in self.all_gather(own, "the start")]
        self.members = tuple(Member(host, int(pid)) for pid, host in members)

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> list[Any]:
        """Receives first: what comes then has its place."""
        byte, messages = self._mpi.BYTE, self._messages
        arriving = [messages.Irecv((memory, byte), rank, tag) for rank, memory, tag in receives]
        leaving = [messages.Isend((memory, byte), rank, tag) for rank, memory, tag in sends]
        return leaving + arriving

    def are_done(self, requests: Sequence[Any]) -> bool:
        """Whether all of them have come to their end; MPI moves messages while it is asked."""
        return bool(self._mpi.Request.Testall(requests, self._statuses))

    def open_requests(self, requests: Sequence[Any]) -> list[int]:
        """The numbers of those that have not."""
        return [number for number, request in enumerate(requests) if not self._is_done(request)]

    def _is_done(self, request: Any) -> bool:
        """Whether it came to its end without a fault."""
        try:
            return bool(request.Test())
        except self._mpi.Exception:
            return False

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message], what: str) -> None:
        """As in any group; E806 also where MPI itself says that a connection broke."""
        try:
            super().exchange(sends, receives, what)
        except self._mpi.Exception as error:
            raise self._broken(
                {message.rank for message in (*sends, *receives)}, error, what
            ) from error

    def finish(
        self, requests: Sequence[Any], ranks: Sequence[set[int]], nbytes: int, what: str
    ) -> None:
        """As in any group; where MPI says that messages broke, E806 names their ranks."""
        try:
            super().finish(requests, ranks, nbytes, what)
        except self._mpi.Exception as error:
            faults = self._faults(error, len(requests))
            numbers = [*faults] or self.open_requests(requests) or range(len(requests))
            lost_ranks = set().union(*(ranks[number] for number in numbers))
            raise self._broken(lost_ranks, next(iter(faults.values()), error), what) from error

    def _faults(self, error: Any, count: int) -> dict[int, Any]:
        """The numbers of the requests that broke, as far as MPI says so, with their errors."""
        if error.Get_error_class() != self._mpi.ERR_IN_STATUS:
            return {}
        fine = (self._mpi.SUCCESS, self._mpi.ERR_PENDING)
        codes = enumerate(status.error for status in self._statuses[:count])
        return {i: self._mpi.Exception(code) for i, code in codes if code not in fine}

    def _broken(self, ranks: set[int], error: Any, what: str) -> LostRankError:
        """What an error of MPI becomes; the last of its lines says most."""
        reason = error.Get_error_string().strip().splitlines()[-1].strip()
        before = f"the connection to {self._list(ranks)} broke in "
        return LostRankError(before, self._location(what), f": {reason}")

    def call_out(self) -> None:
        """Send everybody a message without bytes, on lines of its own."""
        if not self._calls_made:
            peers = (rank for rank in range(self.size) if rank != self.rank)
            self._calls_made = [self._calls.Isend((b"", self._mpi.BYTE), rank) for rank in peers]

    def callers(self) -> set[int]:
        """The ranks whose message has come."""
        status = self._mpi.Status()
        while self._calls.Iprobe(status=status):
            self._calls.Recv((bytearray(), self._mpi.BYTE), status.source)
            self._callers.add(status.source)
        return self._callers

    def has_pulse(self) -> bool:
        """Whether MPI lets threads take turns."""
        return bool(self._mpi.Query_thread() >= self._mpi.THREAD_SERIALIZED)

    def send_pulse(self) -> None:
        """A message without bytes to everybody; theirs are taken, lest they pile up."""
        self._signs_made = [request for request in self._signs_made if not request.Test()]
        peers = (rank for rank in range(self.size) if rank != self.rank)
        nothing = (b"", self._mpi.BYTE)
        self._signs_made += [self._signs.Isend(nothing, rank) for rank in peers]
        self.pulses()

    def pulses(self) -> set[int]:
        """The ranks whose messages have come."""
        status, ranks = self._mpi.Status(), set()
        while self._signs.Iprobe(status=status):
            self._signs.Recv((bytearray(), self._mpi.BYTE), status.source)
            ranks.add(status.source)
        return ranks

    def all_reduce(self, source: memoryview, out: memoryview, element: str, what: str) -> None:
        """MPI_Iallreduce, which is told the type: a memoryview is bytes, and it would add those."""
        kind = getattr(self._mpi, _ELEMENTS[element])
        peers = set(range(self.size)) - {self.rank}
        try:
            request = self._messages.Iallreduce((source, kind), (out, kind), self._mpi.SUM)
            self.finish([request], [peers], len(source), what)
        except self._mpi.Exception as error:
            raise self._broken(peers, error, what) from error

    def abort(self, code: int) -> NoReturn:
        """MPI_Abort: the launcher ends all processes, and exits with this code if it can.

        First it gets time to read what this process has written to its pipes: it drops the rest.
        """
        wait_for_reader(1, 2)
        self._mpi.COMM_WORLD.Abort(code)
        os._exit(code)
