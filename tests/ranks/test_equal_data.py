"""A dataset that is prepared or mapped gives ranks the weights of one process in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import ROOT, environment, started

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from same_data import MODELS

pytestmark = pytest.mark.mpi

SCRIPT = str(ROOT / "tests" / "cli" / "same_data.py")


def weights(ranks: int, way: str, cwd: Path) -> str:
    words = ("train", "it.yaml", "--json", "--no-report", "--threads", "1")
    with started(ranks, SCRIPT, way, *words, cwd=cwd) as job:
        ended = job.end()
    assert ended.code == 0, ended.err
    return str(json.loads(ended.out)["weights_sha256"])


@pytest.mark.parametrize("kind", MODELS)
def test_any_number_of_ranks_and_any_way_end_in_the_same_weights(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, "make", kind]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True)
    expected = weights(0, "memory", tmp_path)
    for ranks in (3, 2):
        assert weights(ranks, "files", tmp_path) == expected, ranks
