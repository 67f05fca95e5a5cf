"""What ranks settle: signals, clocks, and how many steps come before they look up again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradcli.errors import NumericsError
from gradcli.train import ranks as module
from gradcli.train.directory import RunDirectory
from gradcli.train.elsewhere import DirectoryElsewhere, SilentReporter
from gradcli.train.ranks import Ranks
from gradcli.train.report import Reporter
from gradcli.train.safetensors_file import RawTensor


class Gathering:
    """A group of threads that knows all-gather and broadcast alone."""

    def __init__(self, rank: int, size: int, table: list[bytes], meet: threading.Barrier) -> None:
        self.rank, self.size, self.waited = rank, size, 0.0
        self.names = [f"rank {one} on node{one} (pid {one})" for one in range(size)]
        self._table, self._meet = table, meet

    def all_gather(self, data: bytes, what: str) -> list[bytes]:
        self._table[self.rank] = data
        self._meet.wait(10)
        gathered = list(self._table)
        self._meet.wait(10)
        return gathered

    def broadcast(self, data: bytes, what: str, source: int = 0) -> bytes:
        return self.all_gather(data, what)[source]


def together(size: int, work: Callable[[Any], Any]) -> list[Any]:
    """What `work` gives on each rank, or the error that it raises there."""
    table, meet = [b""] * size, threading.Barrier(size)
    answers: list[Any] = [None] * size

    def one(rank: int) -> None:
        try:
            answers[rank] = work(Gathering(rank, size, table, meet))
        except Exception as error:
            answers[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return answers


def signals(first: signal.Signals | None = None) -> Any:
    return SimpleNamespace(first=first)


def test_a_signal_on_one_rank_asks_all_of_them() -> None:
    def work(group: Any) -> Any:
        ranks = Ranks(group, signals(signal.SIGTERM if group.rank == 1 else None))
        ranks.settle(0)
        return ranks.signal

    assert together(3, work) == [signal.SIGTERM] * 3


def test_a_signal_counts_once_all_have_looked_up() -> None:
    """Whoever acts by its own flag leaves at another step than the others."""

    def work(group: Any) -> Any:
        mine = signals()
        ranks = Ranks(group, mine)
        ranks.settle(0)
        mine.first = signal.SIGINT if group.rank == 0 else None
        before = ranks.signal
        ranks.settle(1)
        return before, ranks.signal

    assert together(2, work) == [(None, signal.SIGINT)] * 2


def test_all_make_the_same_number_of_steps_by_the_slowest_pace(monkeypatch) -> None:
    clock = threading.local()
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)

    def work(group: Any) -> Any:
        ranks = Ranks(group, signals())
        ranks.settle(0)
        first = ranks.steps_left(0)
        clock.now = 0.0
        ranks.begin()
        clock.now = 0.01 * (group.rank + 1)  # of one step
        ranks.count_steps(1)
        ranks.settle(1)
        return first, ranks.steps_left(1)

    assert together(2, work) == [(1, 5)] * 2


def test_between_two_looks_nothing_is_exchanged(monkeypatch) -> None:
    monkeypatch.setattr(module, "SETTLE_SECONDS", 1e9)

    def work(group: Any) -> Any:
        ranks = Ranks(group, signals())
        ranks.begin()
        ranks.count_steps(1)
        ranks.settle(0)
        group.all_gather = None
        ranks.settle(100)
        return ranks.steps_left(100) > 100

    assert together(2, work) == [True, True]


def test_the_clock_of_rank_0_decides_on_a_checkpoint() -> None:
    def work(group: Any) -> Any:
        ranks = Ranks(group, signals(), 0.0 if group.rank == 0 else None)
        ranks.settle(0)
        due = ranks.save
        ranks.same_weights({}, 0)
        return due, ranks.save

    assert together(2, work) == [(True, False)] * 2


def test_the_log_has_the_share_of_waiting_and_the_slowest_rank(monkeypatch) -> None:
    clock = threading.local()
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)

    def work(group: Any) -> Any:
        ranks = Ranks(group, signals())
        clock.now = 0.0
        ranks.begin()
        clock.now, group.waited = 1.0, 0.25 if group.rank == 0 else 0.0
        ranks.count_steps(4)
        ranks.settle(0)
        return ranks.waiting(), ranks.waiting()["wait_ranks"]

    answers = together(2, work)
    assert answers[0] == ({"wait_ranks": 0.25, "slowest_rank": 1}, 0.0)
    assert answers[1] == ({"wait_ranks": 0.0, "slowest_rank": 1}, 0.0)


def test_the_log_names_a_sum_whose_bits_depend_on_the_ranks() -> None:
    def work(group: Any) -> Any:
        return Ranks(group, signals(), reduce="library").waiting().get("reduce")

    assert together(2, work) == ["library"] * 2


def test_a_process_alone_logs_no_waiting() -> None:
    group = SimpleNamespace(rank=0, size=1, waited=0.0)
    ranks = Ranks(group, signals())  # type: ignore[arg-type]
    ranks.settle(0)
    assert ranks.waiting() == {}


def tensors(*values: bytes) -> dict[str, RawTensor]:
    names = ("model.0.weight", "model.1.weight")
    return {n: RawTensor("U8", (1,), memoryview(v)) for n, v in zip(names, values, strict=True)}


@pytest.mark.parametrize(("size", "other"), [(2, 1), (3, 0), (3, 2)])
def test_weights_that_differ_name_the_rank_and_the_first_tensor(size: int, other: int) -> None:
    def work(group: Any) -> None:
        Ranks(group, signals()).same_weights(
            tensors(b"a", b"x" if group.rank == other else b"b"), 60
        )

    usual = 0 if other else 1
    for error in together(size, work):
        assert isinstance(error, NumericsError)
        assert (error.code, error.exit_code, error.on_all_ranks) == ("E805", 5, True)
        assert error.message == (
            f"the weights of step 60 are not the same on all ranks: rank {other} on node{other} "
            f"(pid {other}) has another 'model.1.weight' than rank {usual} on node{usual} "
            f"(pid {usual}); nothing is saved"
        )


def test_equal_weights_are_nothing_to_say() -> None:
    answers = together(
        2, lambda group: Ranks(group, signals()).same_weights(tensors(b"a", b"b"), 1)
    )
    assert answers == [None, None]


def test_rank_0_alone_makes_the_directory(tmp_path: Path) -> None:
    def make() -> RunDirectory:
        (tmp_path / "run").mkdir()  # twice would fail
        return RunDirectory(tmp_path / "run")

    mine, other = together(2, lambda group: module.directory(group, make))
    with mine:
        assert type(mine) is RunDirectory
        assert type(other) is DirectoryElsewhere
        assert other.path == mine.path


def test_a_directory_elsewhere_has_every_method_of_its_own() -> None:
    """One that is not written anew would write."""
    inherited = {"__enter__", "__exit__"}
    methods = {name for name, one in vars(RunDirectory).items() if callable(one)}
    public = {name for name in methods if not name.startswith("_")}
    assert public <= set(vars(DirectoryElsewhere)) | inherited


def test_who_is_unseen_has_every_method_of_a_reporter() -> None:
    def public(of: type) -> Sequence[str]:
        return sorted(name for name, one in vars(of).items() if callable(one) and name[0] != "_")

    assert public(SilentReporter) == public(Reporter)
