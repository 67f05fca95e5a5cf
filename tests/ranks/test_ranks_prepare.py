"""Ranks whose data is prepared: once where they share a cache, and however long it takes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from jobs import ROOT, started

pytestmark = pytest.mark.mpi

HERE = Path(__file__).parent
CONFIG = """\
gradcli: 1
name: dots
data: {name: measured, file: rows.txt}
model: [linear: 8, relu, linear: $data.classes]
loss: cross_entropy
optim: {name: adam, lr: 0.05}
train: {epochs: 1, batch: 8, micro_batch: 2, seed: 5, timeout: 2}
"""
WORDS = ("train", "it.yaml", "--json", "--no-report", "--threads", "1")
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "cli")])


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(CONFIG)
    text = "".join(f"{row % 17} {row % 23} {row % 2}\n" for row in range(400))
    (tmp_path / "rows.txt").write_text(text)


def trained(ranks: int, caches: str, seconds: float, cwd: Path) -> tuple[str, list[str], str]:
    """The weights, the ranks that prepared, and what was said beside the result."""
    words = (str(HERE / "slow_data.py"), caches, str(seconds), *WORDS)
    (cwd / "prepared.txt").write_text("")
    with started(ranks, *words, cwd=cwd, variables={"PYTHONPATH": PATHS}) as job:
        ended = job.end()
    assert ended.code == 0, ended.err
    prepared = (cwd / "prepared.txt").read_text().split()
    return json.loads(ended.out)["weights_sha256"], prepared, ended.err


def test_ranks_with_one_cache_prepare_once_and_one_says_that_it_waits(tmp_path: Path) -> None:
    weights, prepared, said = trained(3, "one", 3, tmp_path)
    assert len(prepared) == 1 and prepared != ["0"]
    assert said.count("another process prepares rows.txt; waiting for it") == 1
    again, prepared, said = trained(0, "own", 0, tmp_path)
    assert (again, prepared) == (weights, ["0"])


def test_a_rank_that_prepares_longer_than_the_timeout_is_waited_for(tmp_path: Path) -> None:
    weights, prepared, _ = trained(2, "own", 5, tmp_path)
    assert sorted(prepared) == ["0", "1"]
    again, prepared, _ = trained(3, "own", 0, tmp_path)
    assert (again, prepared) == (weights, ["2"])


def test_a_rank_that_is_stopped_while_it_prepares_ends_the_others(tmp_path: Path) -> None:
    words = (str(HERE / "slow_data.py"), "own", "60", *WORDS)
    with started(2, *words, cwd=tmp_path, variables={"PYTHONPATH": PATHS}) as job:
        limit = time.monotonic() + 30
        while "1" not in (
            (tmp_path / "prepared.txt").read_text() if (tmp_path / "prepared.txt").exists() else ""
        ):
            assert time.monotonic() < limit
            time.sleep(0.05)
        time.sleep(1)
        os.kill(job.ranks()[1], signal.SIGSTOP)
        ended = job.end()
    assert "nothing from rank 1 on " in ended.err
    assert ended.code != 0
