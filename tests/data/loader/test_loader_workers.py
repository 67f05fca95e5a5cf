from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.loader import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from gradcli.errors import WorkerError
from gradcli.train.order import epoch_order

SOON = 5.0
HERE = Path(__file__).resolve().parent


class Numbered(Dataset[Any]):
    """Sample i, after a pause that makes later batches ready before earlier ones."""

    def __init__(self, size: int = 40, fails: int = -1, dies: int = -1, hangs: int = -1) -> None:
        self.size, self.fails, self.dies, self.hangs = size, fails, dies, hangs

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == self.fails:
            raise KeyError("no such flower")
        if index == self.dies:
            os._exit(23)
        if index == self.hangs:
            time.sleep(600)
        time.sleep(0.02 if index % 8 == 0 else 0)
        info = get_worker_info()
        return {"i": index, "rows": engine.full((3, 2), float(index)), "by": info and info.id}


class Shared(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        assert info is not None
        return iter(range(info.id, 11, info.num_workers))


def numbers(batches: Any) -> list[int]:
    return [i for batch in batches for i in batch["i"].tolist()]


def test_the_order_is_the_samplers_whatever_the_workers() -> None:
    loader = DataLoader(Numbered(), batch_size=4, shuffle=True, seed=2, num_workers=2)
    batches = list(loader)
    expected = epoch_order(2, 0, 40).tolist()
    assert numbers(batches) == expected
    assert [batch["by"].tolist()[0] for batch in batches] == [0, 1] * 5
    assert batches[0]["rows"][1].tolist() == [[float(expected[1])] * 2] * 3
    assert multiprocessing.active_children() == []


def test_leaving_early_keeps_the_next_pass_whole() -> None:
    loader = DataLoader(Numbered(), batch_size=4, num_workers=2, persistent_workers=True)
    for place, _ in enumerate(loader):
        if place == 2:
            break
    assert numbers(loader) == list(range(40))
    stale = iter(loader)
    assert numbers(loader) == list(range(40))
    with pytest.raises(ValueError, match="a newer pass has taken over"):
        next(stale)
    del loader, stale
    gc.collect()
    assert multiprocessing.active_children() == []


def test_tensors_of_a_dataset_reach_the_workers() -> None:
    data = TensorDataset(engine.arange(6).reshape(3, 2).t(), engine.tensor([True, False]))
    [(x, truth)] = DataLoader(data, batch_size=2, num_workers=1)
    assert x.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert truth.tolist() == [True, False]


def test_a_worker_that_raises_is_named_with_its_traceback() -> None:
    loader = DataLoader(Numbered(fails=9), batch_size=4, num_workers=2)
    seen = []
    with pytest.raises(
        WorkerError, match="worker 0 failed at sample 9 of batch 2: KeyError"
    ) as caught:
        for batch in loader:
            seen += batch["i"].tolist()
    assert seen == list(range(8))
    assert any("no such flower" in line for line in caught.value.notes)
    assert any("__getitem__" in line for line in caught.value.notes)
    assert multiprocessing.active_children() == []


class Bad:
    def __call__(self, worker: int) -> None:
        raise RuntimeError(f"no room for {worker}")


def test_a_worker_that_fails_before_its_first_sample_is_named() -> None:
    loader = DataLoader(Numbered(), num_workers=1, worker_init_fn=Bad())
    with pytest.raises(WorkerError, match="worker 0 failed: RuntimeError: no room for 0"):
        next(iter(loader))
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_is_named_with_its_exit_code_in_time() -> None:
    passing = iter(DataLoader(Numbered(dies=13), batch_size=4, num_workers=2))
    next(passing)
    began = time.monotonic()
    with pytest.raises(WorkerError, match="worker 1 ended with exit code 23"):
        list(passing)
    assert time.monotonic() - began < SOON
    assert multiprocessing.active_children() == []


def test_a_killed_worker_is_named_with_its_signal() -> None:
    passing = iter(DataLoader(Numbered(hangs=4), batch_size=4, num_workers=2))
    next(passing)
    victim = next(p for p in multiprocessing.active_children() if p.name == "loader-1")
    began = time.monotonic()
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match="worker 1 was killed by SIGKILL"):
        next(passing)
    assert time.monotonic() - began < SOON


def test_a_worker_that_hangs_is_given_up_after_the_timeout() -> None:
    loader = DataLoader(Numbered(hangs=4), batch_size=4, num_workers=2)
    passing = iter(loader)
    next(passing)
    loader.timeout = 0.5  # only now: to start a process takes a time of its own
    with pytest.raises(WorkerError, match=r"worker 1 gave no batch within 0\.5 seconds"):
        next(passing)
    assert multiprocessing.active_children() == []


def test_a_stream_is_shared_among_workers() -> None:
    batches = [b.tolist() for b in DataLoader(Shared(), batch_size=2, num_workers=2)]
    assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]


nameless = [lambda samples: samples][0]


@pytest.mark.parametrize("collate", [lambda samples: samples, nameless])
def test_what_cannot_be_sent_to_a_worker_is_refused(collate: Any) -> None:
    loader = DataLoader(Numbered(), num_workers=1, collate_fn=collate)
    with pytest.raises(WorkerError, match="cannot be sent to a worker"):
        iter(loader)
    assert multiprocessing.active_children() == []


UNGUARDED = """
import sys
sys.path.insert(0, {folder!r})
from gradcli import engine
from gradcli.data import DataLoader, TensorDataset

for _ in DataLoader(TensorDataset(engine.zeros({rows}, 100)), num_workers=1):
    pass
"""


@pytest.mark.parametrize("rows", [10, 10_000])
def test_a_script_without_a_guard_is_told_so(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "program.py"
    path.write_text(UNGUARDED.format(folder=str(HERE.parents[2]), rows=rows))
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "WorkerError: DataLoader: worker 0 ended" in done.stderr
    assert "__name__ == '__main__'" in done.stderr


PROGRAM = """
import sys, time
sys.path[:0] = {folders!r}
from test_loader_workers import Numbered
from gradcli.data.loader import DataLoader

if __name__ == "__main__":
    passing = iter(DataLoader(Numbered(size=10**6), batch_size=4, num_workers=2))
    next(passing)
    import multiprocessing
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    for _ in passing:
        pass
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(folders=[str(HERE), str(HERE.parents[2])]))
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        if how is signal.SIGINT:
            os.killpg(process.pid, how)
        else:
            process.kill()
        _, errors = process.communicate(timeout=20)
    end = time.monotonic() + SOON
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, workers))
    assert errors.count(b"Traceback") == (how is signal.SIGINT)
