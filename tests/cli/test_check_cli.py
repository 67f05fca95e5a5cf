"""`gradcli check`: what it shows of right configs, and all mistakes of wrong ones at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli import main
from gradcli.config import load

Write = Callable[..., Path]


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs `gradcli check`; gives exit code and stderr, and looks for what may never be there."""

    def run(*args: object) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        start = time.process_time()
        code = main.run(["check", *map(str, args)])
        assert time.process_time() - start < 2
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        assert not (tmp_path / "runs").exists()
        return code, shown.err

    return run


Check = Callable[..., tuple[int, str]]


def test_a_right_config_shows_its_layers(
    config_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config_file()
    assert main.run(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tiny, train 100, val 20, test 20 samples, 20 steps" in lines[0]
    assert lines[2].split() == ["1", "linear", "16", "16", "12,560"]
    assert lines[4].split() == ["3", "linear", "'head'", "10", "170"]
    assert lines[5].split() == ["total", "12,730"]
    memory = load(path).memory
    assert memory is not None
    persistent = f"{memory.persistent / 1e3:.1f} kB"
    assert lines[6:] == [
        f"memory: {persistent} of weights, their gradients, the optimizer and data",
        f"        {memory.arena / 1e3:.1f} kB of a step's intermediates",
    ]
    assert main.run(["check", str(path), "--json"]) == 0
    [said] = json.loads(capsys.readouterr().out)["configs"]
    assert said["memory"] == {
        "persistent": memory.persistent,
        "arena": memory.arena,
        "mapped": 0,
    }


def test_what_is_frozen_is_shown(config_file: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(config_file(("loss:", "freeze: [head]\nloss:")))
    assert main.run(["check", path]) == 0
    line = "frozen: 170 of them, in 3.weight, 3.bias"
    assert line in capsys.readouterr().out.splitlines()
    assert main.run(["check", path, "--json"]) == 0
    [checked] = json.loads(capsys.readouterr().out)["configs"]
    assert checked["frozen"] == ["3.weight", "3.bias"]


def test_a_pattern_that_matches_nothing_is_a_mistake(check: Check, config_file: Write) -> None:
    code, shown = check(config_file(("loss:", "freeze: [bias, haed]\nloss:")))
    assert code == 2
    assert "freeze: 'haed' matches no parameter of the model; did you mean 'head'?" in shown
    assert "freeze: [bias, haed]" in shown


def test_a_repeat_shows_one_turn(config_file: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = config_file(("- relu", "- repeat: {times: 3, layers: [linear: 16, relu]}"))
    assert main.run(["check", str(path)]) == 0
    indices = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:-2]]
    assert indices == ["0", "1", "2", "2.0.0", "2.0.1", "3", "total"]


def test_all_configs_are_checked(check: Check, config_file: Write) -> None:
    right = config_file(name="right.yaml")
    code, shown = check(right, config_file(("lr: 0.1", "lr: -1"), name="a.yaml"), "missing.yaml")
    assert code == 2
    assert "a.yaml:11:24" in shown
    assert "there is no file missing.yaml" in shown


def test_json_gives_the_same_as_objects(
    config_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [config_file(name="right.yaml"), config_file(("lr: 0.1", "lr: -1"))]
    assert main.run(["check", "--json", *map(str, paths)]) == 2
    found = json.loads(capsys.readouterr().out)
    right, wrong = found["configs"]
    assert (found["exit_code"], right["ok"], wrong["ok"]) == (2, True, False)
    assert right["parameters"] == 12730
    assert right["layers"][3]["output"] == [10]
    assert right["resolved"]["optim"]["momentum"] == 0.0
    assert (wrong["errors"][0]["line"], wrong["errors"][0]["code"]) == (11, "E104")


def test_resolved_is_a_config_again(config_file: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--resolved", str(config_file()), "-s", "name=no-1e3"]) == 0
    text = capsys.readouterr().out
    path = config_file(text=text, name="again.yaml")
    assert main.run(["check", "--resolved", str(path)]) == 0
    assert capsys.readouterr().out == text


def test_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "gradcli config"


@pytest.mark.parametrize("option", ["--resolved", "--origin"])
def test_a_schema_is_of_no_config(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--schema", option]) == 2
    assert "--schema prints no config" in capsys.readouterr().err


def test_train_refuses_the_same_before_anything_is_written(
    config_file: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = config_file(("lr: 0.1", "lr: -1"), ("relu", "relo"))
    assert main.run(["train", str(path)]) == 2
    shown = capsys.readouterr().err
    assert shown.count("error[") == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.yaml"]


def test_missing_data_are_a_data_error_at_the_path(check: Check, config_file: Write) -> None:
    source = "{name: csv, file: no.csv, target: y, numeric: [x]}"
    code, shown = check(config_file(("{name: fake}", source)))
    assert code == 3
    assert "'no.csv'" in shown
    assert "config.yaml:3:25" in shown
