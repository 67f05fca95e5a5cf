"""What MPI itself reports: a connection that broke is a rank that was lost; and the last words."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gradcli.engine.distributed import mpi
from gradcli.engine.distributed.group import Member, Message
from gradcli.errors import LostRankError

STACK = """Other MPI error, error stack:
internal_Testall(122): MPI_Testall(count=2, req_array=0x7f) failed
UCX returned with failed status: Connection reset by remote peer
"""
OTHER, IN_STATUS, PENDING, TRUNCATED = 16, 17, 18, 15


class FaultError(Exception):
    """As MPI.Exception."""

    def __init__(self, code: int = OTHER) -> None:
        self.code = code

    def Get_error_class(self) -> int:  # noqa: N802 -- the names that mpi4py has
        return self.code

    def Get_error_string(self) -> str:  # noqa: N802
        return {OTHER: STACK, TRUNCATED: "message truncated"}.get(self.code, "see the statuses")


class Pending:
    """A message that ends, does not, or breaks when it is looked at."""

    def __init__(self, ends: bool | None) -> None:
        self.ends = ends

    def Test(self) -> bool:  # noqa: N802
        if self.ends is None:
            raise FaultError
        return self.ends


class World:
    """A communicator whose calls named in `broken` report a fault."""

    rank, size = 0, 1

    def __init__(self, broken: Sequence[str], ends: dict[int, bool | None]) -> None:
        self._broken, self._ends = broken, ends

    def Dup(self) -> World:  # noqa: N802
        return self

    def _begin(self, name: str, rank: int) -> Pending:
        if name in self._broken:
            raise FaultError
        return Pending(self._ends[rank])

    def Isend(self, memory: Any, rank: int, tag: int = 0) -> Pending:  # noqa: N802
        return self._begin("Isend", rank)

    def Irecv(self, memory: Any, rank: int, tag: int = 0) -> Pending:  # noqa: N802
        return self._begin("Irecv", rank)

    def Iallreduce(self, source: Any, out: Any, op: Any) -> Pending:  # noqa: N802
        return self._begin("Iallreduce", 1)

    def Iprobe(self, status: Any) -> bool:  # noqa: N802
        return bool(self._begin("Iprobe", 1).ends)


def group(
    monkeypatch: pytest.MonkeyPatch,
    *broken: str,
    ends: dict[int, bool | None],
    codes: Sequence[int] = (),
) -> mpi.MPIGroup:
    """Rank 0 of three, over an MPI that breaks."""

    def test_all(requests: Sequence[Pending], statuses: list[Any]) -> bool:
        if codes:
            statuses[:] = [SimpleNamespace(error=code) for code in (*codes, TRUNCATED)]
            raise FaultError(IN_STATUS)
        return all(request.Test() for request in requests)

    fake = SimpleNamespace(
        BYTE="byte",
        FLOAT="float",
        SUM="sum",
        COMM_WORLD=World(broken, ends),
        Exception=FaultError,
        SUCCESS=0,
        ERR_IN_STATUS=IN_STATUS,
        ERR_PENDING=PENDING,
        Is_initialized=lambda: True,
        Request=SimpleNamespace(Testall=test_all),
        Status=SimpleNamespace,
    )
    monkeypatch.setattr(mpi, "_mpi", lambda: fake)
    made = mpi.MPIGroup(0.1, None)
    made.members = tuple(Member(f"node{rank}", 100 + rank) for rank in range(3))
    made.where = lambda: "step 7"
    return made


def exchanged(ranks: mpi.MPIGroup) -> str:
    """The error of an exchange with both others."""
    memory = memoryview(bytearray(4))
    messages = [Message(1, memory), Message(2, memory)]
    with pytest.raises(LostRankError) as error:
        ranks.exchange(messages, messages, "a test")
    assert (error.value.code, error.value.exit_code) == ("E806", 75)
    assert isinstance(error.value.__cause__, FaultError)
    return error.value.message


RESET = "UCX returned with failed status: Connection reset by remote peer"


def broke(names: str, why: str = RESET) -> str:
    return f"the connection to {names} broke in step 7: {why}"


ONE, BOTH = "rank 2 on node2 (pid 102)", "rank 1 on node1 (pid 101), rank 2 on node2 (pid 102)"


@pytest.mark.parametrize("begins", ["Isend", "Irecv"])
def test_a_message_that_cannot_begin_names_the_ranks_of_its_exchange(
    monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    assert exchanged(group(monkeypatch, begins, ends={1: True, 2: True})) == broke(BOTH)


def test_a_message_that_breaks_names_its_rank_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exchanged(group(monkeypatch, ends={1: True, 2: None})) == broke(ONE)


def test_the_statuses_of_messages_say_which_of_them_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sends to ranks 1 and 2, then the receives; what lies behind is of an older look."""
    codes = [0, PENDING, PENDING, TRUNCATED]
    ranks = group(monkeypatch, ends={1: True, 2: True}, codes=codes)
    assert exchanged(ranks) == broke(ONE, "message truncated")


def test_a_fault_while_ranks_are_asked_names_those_that_are_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert exchanged(group(monkeypatch, "Iprobe", ends={1: True, 2: False})) == broke(ONE)


@pytest.mark.parametrize("begins", [(), ("Iallreduce",)])
def test_the_sum_of_the_library_names_all_others(
    monkeypatch: pytest.MonkeyPatch, begins: tuple[str, ...]
) -> None:
    ranks = group(monkeypatch, *begins, ends={1: None})
    with pytest.raises(LostRankError) as error:
        ranks.all_reduce(memoryview(bytes(4)), memoryview(bytearray(4)), "float32", "a test")
    assert error.value.message == broke(BOTH)


def test_no_other_error_is_taken_for_a_fault_of_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = group(monkeypatch, ends={})
    with pytest.raises(KeyError):
        ranks.exchange([Message(1, memoryview(bytes(4)))], [], "a test")


@contextlib.contextmanager
def pipe() -> Iterator[int]:
    """The end that a launcher reads of a pipe to which this process says something."""
    ours, there = os.dup(2), os.pipe()
    os.dup2(there[1], 2)
    try:
        os.write(2, b"error")
        yield there[0]
    finally:
        os.dup2(ours, 2)
        for file in (ours, *there):
            os.close(file)


def test_the_last_words_are_read_before_all_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher that ends its ranks drops what it has not read."""
    words: list[bytes] = []

    def read(end: int) -> None:
        time.sleep(0.1)
        words.append(os.read(end, 100))

    def end(code: int) -> None:
        assert words == [b"error"]
        raise SystemExit(code)

    ranks = group(monkeypatch, ends={})
    monkeypatch.setattr(World, "Abort", lambda self, code: end(code), raising=False)
    with pipe() as unread:
        reader = threading.Thread(target=read, args=(unread,))
        reader.start()
        with pytest.raises(SystemExit, match="75"):
            ranks.abort(75)
        reader.join()


def test_nobody_waits_long_for_a_launcher_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mpi, "READ_SECONDS", 0.05)
    began = time.monotonic()
    with pipe():
        mpi.wait_for_reader(2)
    assert 0.05 <= time.monotonic() - began < 5
