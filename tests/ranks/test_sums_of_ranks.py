"""The sum through MPI itself: equal bits on any number of ranks, and the names of lost ranks."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jobs import Job, started

pytestmark = pytest.mark.mpi

PROGRAM = str(Path(__file__).with_name("sums.py"))
SIZES = [256, 257, 65_536, 1 << 20, 3_000_001]  # numbers: 1 KB to 12 MB
LIMIT = 4.0  # seconds


def summed(ranks: int, cwd: Path, lengths: list[int], *ways: str) -> dict[str, Any]:
    what = "joined" if ranks else "alone"
    with started(ranks, PROGRAM, what, json.dumps(lengths), *ways, cwd=cwd) as job:
        ended = job.end(120)
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads(ended.out)
    assert result["size"] == max(ranks, 1)
    return result["hashes"]


@cache
def alone(cwd: Path, lengths: tuple[int, ...]) -> dict[str, str]:
    hashes = summed(0, cwd, list(lengths), "chosen")
    return {name.split()[1]: one for name, (one,) in hashes.items()}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_any_number_of_ranks_has_the_bits_of_one_process(ranks: int, tmp_path: Path) -> None:
    expected = alone(tmp_path.parent, tuple(SIZES))
    ways = ["slices", "chosen", *(["halving", "doubling"] if ranks in (2, 4) else [])]
    hashes = summed(ranks, tmp_path, SIZES, *ways)
    assert hashes == {
        f"{way} {length}": [expected[str(length)]] * ranks for way in ways for length in SIZES
    }


def test_sums_of_64_megabytes_have_the_bits_of_one_process(tmp_path: Path) -> None:
    length = 16 << 20
    expected = alone(tmp_path.parent, (length,))
    hashes = summed(2, tmp_path, [length], "chosen")
    assert hashes == {f"chosen {length}": [expected[str(length)]] * 2}


def test_the_library_adds_numbers_and_not_bytes(tmp_path: Path) -> None:
    assert summed(3, tmp_path, [1000], "library") == {"library 1000": ["True"] * 3}


def begun(job: Job, ranks: int) -> None:
    assert job.process.stdout is not None
    for _ in range(ranks):
        assert job.process.stdout.readline() == "begun\n"


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_stopped_rank_is_named_in_time(ranks: int, tmp_path: Path) -> None:
    """SIGSTOP: its lines stay open, so that MPI itself would wait for ever."""
    variables = {"LIMIT": str(LIMIT)}
    with started(ranks, PROGRAM, "go-on", cwd=tmp_path, variables=variables) as job:
        begun(job, ranks)
        stopped = job.ranks()[1]
        began = time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        ended = job.end(LIMIT + 30)
        seconds = time.monotonic() - began
        assert job.outlives(1) == {}
    sentences = [line for line in ended.out.splitlines() if ": nothing from " in line]
    assert sentences, ended
    for sentence in sentences:
        assert f"nothing from rank 1 on {os.uname().nodename} (pid {stopped}) for 4 s" in sentence
        assert " in step " in sentence
    assert ended.code == 75
    assert LIMIT < seconds < LIMIT + 5


def test_a_killed_rank_ends_the_job(tmp_path: Path) -> None:
    variables = {"LIMIT": str(LIMIT)}
    with started(3, PROGRAM, "go-on", cwd=tmp_path, variables=variables) as job:
        begun(job, 3)
        began = time.monotonic()
        os.kill(job.ranks()[1], signal.SIGKILL)
        ended = job.end(LIMIT + 30)
        assert time.monotonic() - began < LIMIT + 5
        assert job.outlives(1) == {}
    assert ended.code != 0


def test_a_fault_that_mpi_reports_names_the_rank(tmp_path: Path) -> None:
    """A message that is longer than the memory for it."""
    program = (
        "from gradcli.engine import distributed\n"
        "from gradcli.engine.distributed.group import Message\n"
        "from gradcli.errors import LostRankError\n"
        "group = distributed.join(timeout=20)\n"
        "there = Message(1 - group.rank, memoryview(bytearray(8 - 4 * group.rank)))\n"
        "try:\n"
        "    group.exchange(*([there], []) if group.rank == 0 else ([], [there]), 'a test')\n"
        "except LostRankError as error:\n"
        "    print(error.message)\n"
    )
    with started(2, "-c", program, cwd=tmp_path) as job:
        ended = job.end()
    [line] = ended.out.splitlines()
    assert line.startswith(f"the connection to rank 0 on {os.uname().nodename} (pid "), ended
    assert "broke in a test: " in line and "truncate" in line.lower()
