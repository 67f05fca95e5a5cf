"""Steps on ranks: any number of them gives the weights and figures of one, bit for bit.

Equal ranks prove nothing, for a sum that never arrives leaves them equal: one process without a
launcher is what all are compared with.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jobs import started
from step_driver import JOBS

pytestmark = pytest.mark.mpi
DRIVER = str(Path(__file__).with_name("step_driver.py"))


def figures(ranks: int, cwd: Path, *arguments: str) -> dict[str, Any]:
    with started(ranks, DRIVER, str(ranks), *arguments, cwd=cwd) as job:
        ended = job.end(120)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], dict[str, Any]]:
    cwd = tmp_path_factory.mktemp("ranks")
    return cache(lambda ranks: figures(ranks, cwd))


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", JOBS)
def test_a_training_on_ranks_is_that_of_one_process(
    of: Callable[[int], dict[str, Any]], ranks: int, name: str
) -> None:
    assert of(ranks)[name] == of(0)[name]


@pytest.mark.parametrize("ranks", [1, 4])
def test_steps_are_captured_on_ranks_too(of: Callable[[int], dict[str, Any]], ranks: int) -> None:
    """Whole batches and the smaller one of an epoch's end are a program each."""
    for name, found in of(ranks).items():
        assert found["notes"] == []
        assert found["programs"] == (0 if name == "eager" else 2)
