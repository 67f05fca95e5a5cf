"""`mpirun -n N gradcli train` of configs that people use: the weights and figures of one rank."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jobs import ROOT, gradcli

pytestmark = pytest.mark.mpi

# Config, samples of a part, steps. With 24 the last part of a batch is smaller; dropout is in
# mnist_deep, running statistics of batch norm in mnist_resnet, clipping in shakespeare_gpt.
ROWS = [
    ("mnist", 32, 200),
    ("mnist", 24, 200),
    ("mnist_cnn", 16, 200),
    ("mnist_deep", 4, 200),
    ("long/mnist_resnet", 32, 12),
    ("long/shakespeare_gpt", 4, 12),
]
RANKS = (1, 2, 3, 4)
# All of one run but where it lies and how long it took.
OWN = ("run", "seconds")


@cache
def outcome(runs: Path, config: str, part: int, steps: int, ranks: int) -> dict[str, Any]:
    words = ["train", str(ROOT / "configs" / f"{config}.yaml"), "-s", f"train.micro_batch={part}"]
    words += ["--max-steps", str(steps), "--threads", "1", "--runs", str(runs), "--json"]
    ended = gradcli(0 if ranks == 1 else ranks, *words, cwd=runs, timeout=240)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return {key: value for key, value in found.items() if key not in OWN}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("ranks", RANKS[1:])
@pytest.mark.parametrize(("config", "part", "steps"), ROWS)
def test_any_number_of_ranks_ends_in_the_bits_of_one(
    runs: Path, config: str, part: int, steps: int, ranks: int
) -> None:
    alone = outcome(runs, config, part, steps, 1)
    assert alone["steps"] == steps
    assert outcome(runs, config, part, steps, ranks) == alone


def test_other_parts_end_in_other_bits(runs: Path) -> None:
    """What is compared can differ."""
    first, second = (outcome(runs, *row, 1)["weights_sha256"] for row in ROWS[:2])
    assert first != second
