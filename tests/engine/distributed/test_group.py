"""A group of ranks: gathering, handing round, and the names of those who do not come."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from rank_threads import Network, ThreadGroup, on_ranks, wait_for

from gradcli.engine.distributed import ALONE, Group, at_work, group, pulse
from gradcli.engine.distributed.pulse import Pulse
from gradcli.errors import LostRankError

SIZES = range(1, 10)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("length", [0, 1, 247, 248, 249, 5000])
def test_all_gather_gives_all_data_in_order_of_ranks(size: int, length: int) -> None:
    def data(rank: int) -> bytes:
        return bytes([rank + 1]) * (length if rank % 2 else length // 2)

    results = on_ranks(size, lambda group: group.all_gather(data(group.rank), "a test"))
    assert results == [[data(rank) for rank in range(size)]] * size


@pytest.mark.parametrize("size", SIZES)
def test_broadcast_gives_the_data_of_its_source(size: int) -> None:
    for source in range(size):
        for length in (0, 1, 5000):
            results = on_ranks(
                size,
                lambda group, length=length, source=source: group.broadcast(
                    bytes([group.rank]) * (length + group.rank), "a test", source
                ),
            )
            assert results == [bytes([source]) * (length + source)] * size


def test_gathering_takes_few_rounds() -> None:
    network = Network(8)
    on_ranks(8, lambda group: group.all_gather(b"x" * 248, "a test"), network=network)
    assert len(network.sent) == 8 * 3


def test_nobody_leaves_a_barrier_before_the_last_has_come() -> None:
    come = []

    def task(group: ThreadGroup) -> int:
        time.sleep(0.02 * group.rank)
        come.append(group.rank)
        group.barrier("a test")
        return len(come)

    assert on_ranks(5, task) == [5] * 5


def test_ranks_have_names_and_places_on_their_hosts() -> None:
    def facts(group: ThreadGroup) -> tuple[int, int, str]:
        return group.local_rank, group.local_size, group.names[group.rank]

    assert on_ranks(3, facts) == [
        (0, 2, "rank 0 on node0 (pid 1000)"),
        (1, 2, "rank 1 on node0 (pid 1001)"),
        (0, 1, "rank 2 on node1 (pid 1002)"),
    ]


def test_one_process_is_a_group() -> None:
    assert group() is ALONE
    assert (ALONE.rank, ALONE.size, ALONE.local_rank, ALONE.local_size) == (0, 1, 0, 1)
    assert ALONE.all_gather(b"abc", "a test") == [b"abc"]
    assert ALONE.broadcast(b"abc", "a test") == b"abc"
    ALONE.barrier("a test")
    assert ALONE.waited == 0


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_who_does_not_come_is_named(size: int) -> None:
    """By every rank, also by those who wait for a rank that waits itself."""
    absent = size - 1

    def task(group: ThreadGroup) -> str:
        if group.rank == absent:
            return ""
        group.where = lambda: "step 4,211"
        with pytest.raises(LostRankError) as error:
            group.barrier("a test")
        assert (error.value.code, error.value.exit_code) == ("E806", 75)
        return error.value.message

    began = time.monotonic()
    messages = on_ranks(size, task, timeout=0.3)
    name = f"rank {absent} on node{absent // 2} (pid {1000 + absent})"
    assert set(messages) == {"", f"nothing from {name} for 0.3 s in step 4,211"}
    assert time.monotonic() - began < 0.3 + 5


def test_a_lost_message_names_its_sender_where_all_ranks_live() -> None:
    def task(group: ThreadGroup) -> str:
        try:
            group.all_gather(b"", "a test")
        except LostRankError as error:
            return error.message
        return ""

    messages = on_ranks(
        2, task, timeout=0.2, network=Network(2, loses=lambda source, target: source == 1)
    )
    assert messages[0] == "nothing from rank 1 on node0 (pid 1001) for 0.2 s in a test"


def test_who_waits_long_says_for_whom_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group, "note_seconds", 0.05)
    notes: list[str] = []
    come = threading.Event()

    def task(group: ThreadGroup) -> None:
        if group.rank == 0:
            group.note = notes.append
        else:
            wait_for(lambda: bool(notes))
            come.wait(0.1)
        group.barrier("a test")
        assert group.waited > 0

    on_ranks(2, task)
    [note] = notes
    assert note == (
        "a test: nothing from rank 1 on node0 (pid 1001) for 0.05 s; after 60 s the others end"
    )


def test_a_rank_that_comes_when_all_have_given_up_blames_itself() -> None:
    """As one does that was stopped, and is woken by the end of the job."""

    def task(group: ThreadGroup) -> str:
        if group.rank == 1:
            wait_for(lambda: len(group.callers()) == 2)
        with pytest.raises(LostRankError) as error:
            group.barrier("a test")
        return error.value.message

    messages = on_ranks(3, task, timeout=0.5)
    late = "rank 1 on node0 (pid 1001)"
    assert messages[0] == messages[2] == f"nothing from {late} for 0.5 s in a test"
    assert messages[1] == f"{late} came too late to a test: others had waited for 0.5 s"


def late(group: ThreadGroup, seconds: float, lives: bool) -> None:
    """Rank 1 comes late, with a pulse or without; the others are there at once."""
    if group.rank == 1:
        with Pulse(group) if lives else contextlib.nullcontext():
            time.sleep(seconds)
    group.barrier("a test")


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_rank_that_works_by_itself_is_waited_for(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "BETWEEN", 0.02)
    on_ranks(size, lambda group: late(group, 1.5, lives=True), timeout=0.5)
    with pytest.raises(LostRankError, match="nothing from rank 1 on node0"):
        on_ranks(size, lambda group: late(group, 1.5, lives=False), timeout=0.5)


def test_a_rank_whose_pulse_ends_is_named() -> None:
    def task(group: ThreadGroup) -> None:
        if group.rank == 1:
            group.send_pulse()
            time.sleep(1.5)
        group.barrier("a test")

    with pytest.raises(LostRankError, match="nothing from rank 1 on node0"):
        on_ranks(2, task, timeout=0.5)


def test_who_works_by_itself_is_named_while_the_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "BETWEEN", 0.02)
    notes: list[str] = []

    def task(group: ThreadGroup) -> None:
        group.note_seconds = 0.2
        group.note = notes.append if group.rank == 0 else None
        late(group, 0.5, lives=True)

    on_ranks(2, task)
    assert notes == ["a test: rank 1 on node0 (pid 1001) is at work on data, the others wait"]


def test_a_process_alone_has_no_pulse() -> None:
    threads = threading.active_count()
    with at_work():
        assert threading.active_count() == threads
