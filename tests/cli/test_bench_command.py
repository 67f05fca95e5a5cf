"""`gradcli bench`: the figures exist, add up, and say where they were measured."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.bench import against, report, step
from gradcli.cli.main import run
from gradcli.engine.device import cpu
from gradcli.errors import CaptureError

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PENGUINS = str(CONFIGS / "penguins.yaml")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever else runs here is no business of these tests; the threads stay those of others."""
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    before = cpu.threads()
    yield
    cpu.set_threads(before)


def measured(capsys: Capture, *arguments: str) -> dict[str, Any]:
    assert run(["bench", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_kernels_are_timed_with_their_rates(capsys: Capture) -> None:
    found = measured(capsys, "--steps", "1")
    assert found["instruction_set"] == cpu.isa()
    assert found["threads"] == cpu.threads() == found["ceilings"]["threads"]
    items = {item["name"].partition(" ")[0]: item for item in found["items"]}
    assert {"copy", "matmul", "conv2d", "softmax", "sum"} <= set(items)
    assert all(item["ms"] > 0 and item["gbs"] > 0 for item in found["items"])
    assert all(item["percent"] > 0 for item in found["items"])
    assert items["matmul"]["gflops"] > 0
    assert items["copy"]["gflops"] is None
    assert items["copy"]["bound"] == "memory"


def test_a_config_is_timed_by_step_layer_and_call(capsys: Capture) -> None:
    found = measured(capsys, str(CONFIGS / "mnist.yaml"), "--steps", "2", "--top", "3")
    assert set(found["steps"]) == {"eager", "captured"}
    for name, row in found["steps"].items():
        assert 0 < row["low"] <= row["ms"] <= row["high"]
        rate = found["batch"] / row["ms"] * 1e3
        assert found["samples_per_second"][name] == pytest.approx(rate, rel=0.01)
    assert set(found["wait_data"]) == {"eager", "captured"}
    assert all(0 < share <= 1 for share in found["wait_data"].values())
    assert found["why_not_captured"] == ""
    names = [row["name"] for row in found["layers"]]
    assert {"batch", "1 linear 256", "3 linear 'head'", "loss", "optimizer"} <= set(names)
    assert names.index("1 linear 256") < names.index("3 linear 'head'") < names.index("optimizer")
    total = sum(row["ms"] for row in found["layers"])
    assert total == pytest.approx(found["program"]["ms"], rel=0.01)
    assert sum(row["calls"] for row in found["layers"]) == found["program"]["calls"]
    assert len(found["calls"]) == 3
    assert found["calls"][0]["ms"] >= found["calls"][1]["ms"] >= found["calls"][2]["ms"]


def test_memory_is_told_in_bytes(capsys: Capture) -> None:
    memory = measured(capsys, PENGUINS, "--steps", "1")["memory"]
    # 9 inputs, 32 between, 3 species; AdamW keeps two numbers a parameter, and counts steps.
    parameters = 4 * (9 * 32 + 32 + 32 * 3 + 3)
    assert memory["parameters"] == parameters
    assert 2 * parameters <= memory["optimizer"] < 3 * parameters
    assert memory["arena"] > 0
    assert memory["peak_resident"] > 1 << 20


def test_the_tables_name_what_was_measured(capsys: Capture) -> None:
    assert run(["bench", PENGUINS, "--steps", "1", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert "penguins, batch 32; cpu, " in said.splitlines()[0]
    for word in (
        "eager",
        "captured",
        "0 linear 32",
        "optimizer",
        "intermediates",
        "GB/s of copies",
    ):
        assert word in said
    assert "measured here with threads 1" in said
    assert run(["bench", "--steps", "1"]) == 0
    assert "matmul 256x256x256" in capsys.readouterr().out


def test_a_busy_machine_is_a_warning(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert report.disturbed({"load": 0.0}) == ""
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    assert run(["bench", PENGUINS, "--steps", "1"]) == 0
    assert "warning: the load of this machine was 99 on " in capsys.readouterr().err


def test_capture_false_is_told_and_not_measured(capsys: Capture) -> None:
    found = measured(capsys, PENGUINS, "--steps", "1", "-s", "train.capture=false")
    assert set(found["steps"]) == {"eager"}
    assert "train.capture is false" in found["why_not_captured"]


def test_a_step_that_cannot_be_recorded_is_timed_as_a_whole(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise CaptureError("the step reads a value")

    monkeypatch.setattr(step, "parts", refuse)
    found = measured(capsys, PENGUINS, "--steps", "1")
    assert found["steps"]["eager"]["ms"] > 0
    assert found["why_not_captured"] == "the step reads a value"
    assert "program" not in found
    assert run(["bench", PENGUINS, "--steps", "1"]) == 0
    assert "the step reads a value" in capsys.readouterr().out


def written(path: Path, found: dict[str, Any], factor: float = 1.0) -> str:
    """An earlier measurement, with other times."""
    for row in found["steps"].values():
        row["ms"] *= factor
    path.write_text(json.dumps(found), encoding="utf-8")
    return str(path)


def test_against_what_was_slower_passes(tmp_path: Path, capsys: Capture) -> None:
    old = written(tmp_path / "old.json", measured(capsys, PENGUINS, "--steps", "1"), factor=1000)
    found = measured(capsys, PENGUINS, "--steps", "1", "--against", old, "--tolerance", "0.5%")
    assert {row["name"] for row in found["against"]} == {"eager", "captured"}
    assert all(row["percent"] < -50 for row in found["against"])


def test_against_what_was_faster_ends_in_6_after_the_report(
    tmp_path: Path, capsys: Capture
) -> None:
    old = written(tmp_path / "old.json", measured(capsys, PENGUINS, "--steps", "1"), factor=0.001)
    assert run(["bench", PENGUINS, "--steps", "1", "--against", old]) == 6
    said = capsys.readouterr()
    assert "eager" in said.out
    assert "error[E601] 2 of 2 times more than 5% above " in said.err
    assert "old.json: eager: " in said.err
    assert run(["bench", PENGUINS, "--steps", "1", "--against", old, "--json"]) == 6
    said = capsys.readouterr()
    assert json.loads(said.out)["against"]
    assert json.loads(said.err)["exit_code"] == 6


def test_against_other_conditions_is_refused_before_measuring(
    tmp_path: Path, capsys: Capture
) -> None:
    old = written(tmp_path / "old.json", measured(capsys, PENGUINS, "--steps", "1"))
    assert run(["bench", PENGUINS, "--against", old, "-s", "train.batch=8"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "was measured with batch 32, this is batch 8" in said.err
    assert run(["bench", "--against", old]) == 2
    assert "was measured with name penguins, this is name nothing" in capsys.readouterr().err


def test_kernels_against_a_config_have_nothing_in_common(tmp_path: Path, capsys: Capture) -> None:
    old = tmp_path / "old.json"
    facts = {key: value for key, value in report.conditions("cpu").items() if key != "load"}
    old.write_text(json.dumps({**facts, "items": [{"name": "gone", "ms": 1.0}]}))
    assert run(["bench", "--steps", "1", "--against", str(old)]) == 2
    assert "nothing that is measured now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-s", "train.batch=8"], "-s replaces values of a config, and no CONFIG is given"),
        (["--compare", "torch"], "--compare runs the model of a config, and no CONFIG is given"),
        (["--tolerance", "5%"], "--tolerance is for --against FILE, which is not given"),
        ([PENGUINS, "--tolerance", "5"], "a tolerance is a percentage such as 5%, got '5'"),
        ([PENGUINS, "--tolerance", "-1%"], "a tolerance is a percentage such as 5%, got '-1%'"),
        ([PENGUINS, "--tolerance", "nan%"], "a tolerance is a percentage such as 5%, got 'nan%'"),
        ([PENGUINS, "--compare", "jax"], "'jax' is not 'torch'"),
        ([PENGUINS, "--steps", "0"], "0 is not in the range x>=1"),
        ([PENGUINS, "--top", "-1"], "-1 is not in the range x>=0"),
        ([PENGUINS, "--against", "none.json"], "--against: cannot read none.json: No such file"),
        ([PENGUINS, "--against", PENGUINS], "is not what `gradcli bench --json` prints"),
        (["none.yaml"], "none.yaml"),
    ],
)
def test_wrong_usage_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, capsys: Capture
) -> None:
    assert run(["bench", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err


def test_pytorch_that_is_missing_is_refused_at_once(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else found(name)
    )
    assert run(["bench", PENGUINS, "--compare", "torch"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "--compare torch: PyTorch is not installed in this Python" in said.err
    assert "-m pip install torch" in said.err


@pytest.mark.parity
def test_pytorch_runs_the_same_step_and_ratios_follow(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

    def no_compiler(function: object) -> object:
        raise RuntimeError("no compiler\nhere")

    monkeypatch.setattr(torch, "compile", no_compiler)
    found = measured(capsys, PENGUINS, "--steps", "1", "--compare", "torch")
    assert set(found["steps"]) == {"eager", "captured", "torch eager"}
    beside = found["torch"]
    assert beside["why_not_compiled"] == "torch.compile fails here: no compiler"
    assert beside["first_loss"]["gradcli"] == pytest.approx(beside["first_loss"]["torch"], rel=1e-5)
    for name, ratio in beside["ratios"].items():
        expected = found["steps"]["torch eager"]["ms"] / found["steps"][name]["ms"]
        assert ratio == pytest.approx(expected, rel=0.01)
    figures = against.compared(Path("old.json"), found, found)
    assert {figure.name for figure in figures} == {"eager", "captured"}


@pytest.mark.parametrize("device", ["cuda", "metal"])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(device: str, capsys: Capture) -> None:
    assert run(["bench", "--device", device]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert f"device '{device}' cannot be used: " in said.err
