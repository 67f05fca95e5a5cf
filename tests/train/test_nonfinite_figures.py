"""A figure that is not finite: what status.json says of it, however the run ends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tiny import TinyData, TinySplit, only_run, tiny_job, train

from gradcli.train.checkpoint import CheckpointMeta, file_name, read, write
from gradcli.train.judging import judge, latest_figures


def metrics_of(run: Path) -> Any:
    return json.loads((run / "status.json").read_text())["metrics"]


def test_a_run_that_failed_says_which_figure_was_not_finite(tmp_path: Path) -> None:
    def fail(indices: list[int]) -> None:
        if any(metrics_of(file.parent) for file in tmp_path.rglob("status.json")):
            raise ValueError("planted")

    job = tiny_job(
        dataset=TinyData(
            {"train": TinySplit(42, 1, on_batch=fail), "val": TinySplit(20, 2, poison=3)}
        )
    )
    with pytest.raises(ValueError, match="planted"):
        train(tmp_path, job)
    metrics = metrics_of(only_run(tmp_path))
    assert metrics["val.loss"] is None and metrics["val.accuracy"] > 0
    assert metrics["nonfinite"] == {"val.loss": "nan"}


def test_a_checkpoint_keeps_what_a_figure_was(tmp_path: Path) -> None:
    figures = {"val.loss": math.inf, "val.r2": -math.inf, "val.accuracy": 0.5}
    before = CheckpointMeta(step=4, epoch=1, seed=5, optimizer="adam", config_sha256="0")
    meta = judge(tiny_job(), before, figures)
    write(tmp_path, meta, {})
    assert latest_figures(read(tmp_path / file_name(4)).meta) == figures


@pytest.mark.parametrize("word", [None, "1e3", 7, [], {}])
def test_a_figure_of_which_nothing_is_said_is_nan(word: Any) -> None:
    meta = CheckpointMeta(
        step=4,
        epoch=1,
        seed=5,
        optimizer="adam",
        config_sha256="0",
        metrics={"val.loss": None},
        nonfinite={"val.loss": word},
    )
    assert math.isnan(latest_figures(meta)["val.loss"])
