"""How often a run writes a line of its log on steps: as the config says, else about 400 times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import points
import pytest
from hypothesis import given
from hypothesis import strategies as st
from points import CONFIG, only_run

from gradcli.config import load
from gradcli.train.job import RECORDS, TrainSettings, logged_every

Call = Callable[..., Any]
gradcli = points.gradcli
LEFT_OUT = CONFIG.replace(", log_every: 1", "")  # 6 steps an epoch


def steps_logged(run: Path) -> list[int]:
    records = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [one["step"] for one in records if one["event"] == "step"]


def resolved_every(run: Path) -> int:
    every = load(run / "resolved.yaml", room=None).train.log_every
    assert every is not None
    return every


@pytest.mark.parametrize(
    ("steps", "every"),
    [(0, 1), (1, 1), (599, 1), (600, 2), (1290, 3), (3799, 9), (3800, 10), (5999, 10), (6000, 20)],
)
def test_it_is_a_four_hundredth_rounded_to_one_digit(steps: int, every: int) -> None:
    assert logged_every(TrainSettings(batch=1, steps=steps), steps) == every
    assert logged_every(TrainSettings(batch=1, steps=steps, log_every=7), steps) == 7


@given(st.integers(RECORDS, 10**12))
def test_a_run_has_about_400_lines(steps: int) -> None:
    every = logged_every(TrainSettings(batch=1, steps=steps), steps)
    assert str(every).rstrip("0") in list("123456789")
    assert RECORDS / 1.5 <= steps / every < RECORDS * 1.5


@pytest.mark.parametrize(("epochs", "every"), [(3, 1), (150, 2)])
def test_where_it_is_left_out_the_resolved_config_has_the_number(
    gradcli: Call, epochs: int, every: int
) -> None:
    Path("dots.yaml").write_text(LEFT_OUT)
    long = ("-s", f"train.epochs={epochs}")
    assert f"log_every: {every}\n" in gradcli("check", "dots.yaml", "--resolved", *long).out
    assert gradcli("train", "dots.yaml", "--max-steps", "7", *long).code == 0
    assert steps_logged(only_run()) == ([1, 2, 3, 4, 5, 6, 7] if every == 1 else [1, 2, 4, 6])
    assert resolved_every(only_run()) == every


def test_a_longer_run_keeps_its_cadence(gradcli: Call) -> None:
    Path("dots.yaml").write_text(LEFT_OUT)
    assert gradcli("train", "dots.yaml", "--max-steps", "3").code == 0
    assert gradcli("resume", "last", "-s", "train.epochs=300", "-s", "train.steps=null").code == 0
    assert resolved_every(only_run()) == 1
    assert steps_logged(only_run()) == list(range(1, 1801))


def test_a_config_that_leaves_it_out_goes_on_as_its_run_began(gradcli: Call) -> None:
    Path("dots.yaml").write_text(LEFT_OUT.replace("epochs: 3", "epochs: 150"))
    assert gradcli("train", "dots.yaml", "--max-steps", "3").code == 0
    Path("dots.yaml").write_text(LEFT_OUT.replace("epochs: 3", "epochs: 2"))
    assert gradcli("train", "dots.yaml", "--continue").code == 0
    assert resolved_every(only_run()) == 2
    assert steps_logged(only_run()) == [1, 2, 4, 6, 8, 10, 12]


def test_a_run_of_a_version_that_said_50_keeps_50(gradcli: Call) -> None:
    Path("dots.yaml").write_text(LEFT_OUT.replace("epochs: 3", "epochs: 20"))
    assert gradcli("train", "dots.yaml", "--max-steps", "3", "-s", "train.log_every=50").code == 0
    assert resolved_every(only_run()) == 50
    assert gradcli("train", "dots.yaml", "--continue").code == 0  # with what it leaves out
    assert resolved_every(only_run()) == 50
    assert steps_logged(only_run()) == [1, 50, 100]


def test_it_may_be_said_anew_at_any_time(gradcli: Call) -> None:
    Path("dots.yaml").write_text(LEFT_OUT)
    assert gradcli("train", "dots.yaml", "--max-steps", "3").code == 0
    assert gradcli("resume", "last", "-s", "train.log_every=5").code == 0
    assert steps_logged(only_run()) == [1, 2, 3, 5, 10, 15]
    assert resolved_every(only_run()) == 5
