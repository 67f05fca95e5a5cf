"""`gradcli bench`: the figures exist, add up, and say where they were measured."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gradcli.cli import bench
from gradcli.cli.main import run
from gradcli.engine.device import cpu

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_kernels_are_timed_with_their_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--steps", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["instruction_set"] == cpu.isa()
    assert found["threads"] == cpu.threads()
    items = {item["name"].partition(" ")[0]: item for item in found["items"]}
    assert {"copy", "matmul", "conv2d", "softmax", "sum"} <= set(items)
    assert all(item["ms"] > 0 and item["gbs"] > 0 for item in found["items"])
    assert items["matmul"]["gflops"] > 0
    assert items["copy"]["gflops"] is None


def test_the_median_counts_and_not_the_slowest() -> None:
    pauses = iter([0, 0, 0, 0.001, 0.2, 0.001])
    item = bench.Item("pause", lambda: time.sleep(next(pauses)), flops=1e6)
    found = bench.measured(item, steps=3)
    assert 1 <= found["ms"] < 100
    assert 0 < found["gflops"] <= 1


def test_a_config_is_timed_by_step_and_layer(capsys: pytest.CaptureFixture[str]) -> None:
    config = str(CONFIGS / "mnist.yaml")
    assert run(["bench", config, "--steps", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step_ms"] > 0
    assert found["samples_per_second"] == pytest.approx(
        found["batch"] / found["step_ms"] * 1e3, rel=0.01
    )
    assert len(found["items"]) >= 4


def test_overrides_without_a_config_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "-s", "train.batch=8"]) == 2
    assert "no CONFIG is given" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cuda", "metal"])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(
    device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", "--device", device]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert f"device '{device}' cannot be used: " in said.err
