"""A rank fails at a random moment: the job ends in time, nothing stays, and the run goes on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from failures import CONFIG, FAULTS, disturbed, faults_of, resumed, whole

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return whole(tmp_path_factory.mktemp("whole"))


# So many ranks fail, and so many go on (0: no launcher); the many are the ones that end early.
@pytest.mark.parametrize(("ranks", "others"), [(2, 0), (3, 2)])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_job_ends_and_another_number_of_ranks_ends_with_its_weights(
    tmp_path: Path, expected: str, fault: str, ranks: int, others: int
) -> None:
    (tmp_path / "small.yaml").write_text(CONFIG)
    victim = 0 if fault == "disk" else random.randrange(ranks)
    story = disturbed(tmp_path, fault, ranks, victim, 0.3 * random.random())
    assert faults_of(story, fault, victim) == [], story
    assert resumed(tmp_path, others) == expected
