"""Steps on ranks: any number of them gives the weights and figures of one, bit for bit.

Equal ranks prove nothing, for a sum that never arrives leaves them equal: one process without a
launcher is what all are compared with.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jobs import ROOT, started
from step_driver import FAULTS, JOBS

pytestmark = pytest.mark.mpi
DRIVER = str(Path(__file__).with_name("step_driver.py"))


@cache
def figures(ranks: int, *arguments: str) -> dict[str, Any]:
    with started(ranks, DRIVER, str(ranks), *arguments, cwd=ROOT) as job:
        ended = job.end(120)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", JOBS)
def test_a_training_on_ranks_is_that_of_one_process(ranks: int, name: str) -> None:
    assert figures(ranks)[name] == figures(0)[name]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_shows(fault: str) -> None:
    [(name, spoilt)] = figures(2, fault).items()
    key = "figures" if fault == "padded_evaluation" else "sha256"
    assert spoilt[key] != figures(0)[name][key]


@pytest.mark.parametrize("ranks", [0, 4])
def test_steps_are_captured_on_ranks_too(ranks: int) -> None:
    """Whole batches and the smaller one of an epoch's end are a program each."""
    for name, found in figures(ranks).items():
        assert found["notes"] == []
        assert found["programs"] == (0 if name == "eager" else 2)
