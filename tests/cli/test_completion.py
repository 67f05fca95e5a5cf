"""What the shells are offered at TAB, asked as they ask, and by a real bash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import gradcli as package
from gradcli.cli import completion

ROOT = str(Path(package.__file__).parents[1])
CONFIG = "gradcli: 1\noptim: {name: adam, lr: 0.1}\ndata: {name: csv}\nmodel: [linear: 1]\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with configs, and runs with checkpoints."""
    (tmp_path / "a.yaml").write_text(CONFIG)
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.yml").write_text(CONFIG)
    for name, steps in (("mnist", (4, 316)), ("other", (7,))):
        folder = tmp_path / "runs" / name / "20260101-000000Z-001" / "checkpoints"
        folder.mkdir(parents=True)
        for step in steps:
            (folder / f"step-{step:08d}.safetensors").write_bytes(b"")
    return tmp_path


def ask(place: Path, how: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": ROOT, "_GRADCLI_COMPLETE": how, **environ}
    return subprocess.run(
        [sys.executable, "-m", "gradcli"],
        cwd=place,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def offered(place: Path, line: str) -> list[str]:
    """What bash is offered behind a line."""
    ended = ask(place, "bash_complete", {"COMP_LINE": line, "COMP_POINT": str(len(line))})
    assert ended.stderr == ""
    return [row.partition(",")[2] for row in ended.stdout.splitlines() if row]


def test_a_path_may_begin_with_the_home_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert offered(place / "more", "gradcli train ~/a") == ["~/a.yaml"]
    assert offered(place, "gradcli check ~/more/") == ["~/more/b.yml"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("gradcli tr", ["train"]),
        ("gradcli train --max", ["--max-steps"]),
        ("gradcli train ", ["a.yaml", "more/", "runs/"]),
        ("gradcli check more/", ["more/b.yml"]),
        ("gradcli eval ", ["last", "mnist", "other"]),
        ("gradcli watch ", ["last", "mnist", "other"]),
        ("gradcli watch --p", ["--port"]),
        ("gradcli resume m", ["mnist"]),
        ("gradcli eval mnist@", ["best", "last", "4", "316"]),
        ("gradcli predict mnist@3", ["316"]),
        ("gradcli eval mnist --checkpoint ", ["best", "last", "4", "316"]),
        ("gradcli train a.yaml --from oth", ["other"]),
        ("gradcli train a.yaml -s optim.", ["optim.lr=", "optim.name="]),
        ("gradcli train a.yaml -s train.ep", ["train.epochs="]),
        ("gradcli gradcheck softm", ["softmax", "softmin"]),
        ("gradcli ops softsi", ["softsign"]),
        ("gradcli train --device me", ["metal"]),
        ("gradcli bench --compare ", ["torch"]),
        ("gradcli eval last --split v", ["val"]),
        ("gradcli nonsense ", []),
        ("gradcli eval nowhere@", []),
        ("gradcli train 'a", ["a.yaml"]),
    ],
)
def test_a_line_is_completed(place: Path, line: str, names: list[str]) -> None:
    assert offered(place, line) == names


def test_the_newest_run_is_that_of_the_commands(place: Path) -> None:
    for folder, step in (("20260201-090000Z-001", 1), ("20260201-003000-001", 2)):
        checkpoints = place / "runs" / "mnist" / folder / "checkpoints"
        checkpoints.mkdir(parents=True)
        (checkpoints / f"step-{step:08d}.safetensors").write_bytes(b"")
    manifest = {"created": "2026-02-01T00:30:00-10:00"}  # an old name, of a later time in UTC
    (checkpoints.parent / "manifest.json").write_text(json.dumps(manifest))
    assert offered(place, "gradcli eval mnist@") == ["best", "last", "2"]


@pytest.mark.parametrize(
    ("how", "environ"),
    [
        ("zsh_complete", {"COMP_WORDS": "gradcli eval mnist@b", "COMP_CWORD": "2"}),
        ("fish_complete", {"COMP_WORDS": "gradcli eval mnist@b", "COMP_CWORD": "mnist@b"}),
    ],
)
def test_zsh_and_fish_are_offered_whole_words(
    place: Path, how: str, environ: dict[str, str]
) -> None:
    ended = ask(place, how, environ)
    assert "mnist@best" in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("how", ["bash_complete", "zsh_complete", "nonsense", "bash_nonsense"])
def test_what_goes_wrong_is_not_printed(tmp_path: Path, how: str) -> None:
    ended = ask(tmp_path, how, {"COMP_POINT": "x"})
    assert ended.stdout == ""
    assert ended.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_names_the_command(tmp_path: Path, shell: str) -> None:
    ended = ask(tmp_path, f"{shell}_source", {})
    assert ended.returncode == 0
    assert "gradcli" in ended.stdout
    assert f"{shell}_complete" in ended.stdout
    assert "Usage" not in ended.stdout


def test_a_real_bash_completes(place: Path) -> None:
    if not shutil.which("bash"):
        pytest.skip("no bash on this machine")
    command = place / "gradcli"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gradcli "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(_GRADCLI_COMPLETE=bash_source gradcli)"
        compopt() { :; }
        COMP_LINE="gradcli eval mnist@b"; COMP_POINT=${#COMP_LINE}
        _gradcli_completion gradcli && echo "${COMPREPLY[*]}"
        COMP_LINE="gradcli train a.yaml -s optim.l"; COMP_POINT=${#COMP_LINE}
        _gradcli_completion gradcli && echo "${COMPREPLY[*]}"
        complete -p gradcli
    """
    path = f"{place}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        env={**os.environ, "PYTHONPATH": ROOT, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines()[:2] == ["best", "optim.lr="]
    assert "_gradcli_completion" in ended.stdout
    assert ended.stderr == ""


def test_no_engine_is_imported_for_it(place: Path) -> None:
    code = (
        "import sys\nfrom gradcli.cli.main import run\nrun([])\n"
        "sys.exit('gradcli.engine' in sys.modules or 'pydantic' in sys.modules)"
    )
    line = "gradcli train a.yaml -s optim."
    environ = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "PYTHONPATH": ROOT}
    variables = {**os.environ, "_GRADCLI_COMPLETE": "bash_complete", **environ}
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=place, env=variables, check=False
        ).returncode
        == 0
    )


def test_the_keys_of_train_are_those_of_its_settings() -> None:
    from gradcli.train.job import TrainSettings

    assert {field.name for field in fields(TrainSettings)} == set(completion.TRAIN_KEYS)


@pytest.mark.parametrize("step", [0, 7, 12_345_678, 123_456_789_012])
def test_a_checkpoint_is_known_by_the_name_that_it_is_saved_under(step: int) -> None:
    from gradcli.train.checkpoint import file_name, step_of

    match = completion.STEP_FILE.fullmatch(file_name(step))
    assert match is not None
    assert int(match[1]) == step == step_of(file_name(step))
