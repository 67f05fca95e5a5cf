"""The tests' own launcher: ranks see each other, and what is left over is ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import started

pytestmark = pytest.mark.mpi

SIZES = "from mpi4py import MPI; print(MPI.COMM_WORLD.allgather(MPI.COMM_WORLD.rank))"
FOR_EVER = "from mpi4py import MPI; import time; print('here', flush=True); time.sleep(600)"


def test_ranks_of_a_job_see_each_other(tmp_path: Path) -> None:
    with started(2, "-c", SIZES, cwd=tmp_path) as job:
        ended = job.end()
    assert (ended.code, ended.out.count("[0, 1]")) == (0, 2), ended.err


def test_nothing_outlives_a_job(tmp_path: Path) -> None:
    with started(2, "-c", FOR_EVER, cwd=tmp_path) as job:
        assert job.process.stdout is not None
        assert "here" in job.process.stdout.readline()
        assert len(job.ranks()) == 2 < len(job.members())
    assert job.process.poll() is not None
    assert job.members() == {}
