"""Row 62: Ctrl-C and its kin at every moment: the promised exit code, and a state that resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import points
import pytest
from points import Ended, only_run
from refusals import begin, finish, gradcli

import gradcli as package
from gradcli.train import atomic, launch, loop, measuring, step

__all__ = ["gradcli"]

Cli = Callable[..., Ended]
LONG = ("-s", "train.epochs=60", "-s", "train.checkpoint_every=50")


@pytest.fixture
def whole(gradcli: Cli) -> str:
    """The weights of a run that nothing disturbs."""
    return str(gradcli("train", "dots.yaml", "--json", "--name", "whole").json["weights_sha256"])


AT_IMPORT = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == STRUCK:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
STRUCK = sys.argv[1]
sys.argv = ['gradcli', 'train', 'rows.yaml']
runpy.run_module('gradcli', run_name='__main__')
"""
ROWS = """\
gradcli: 1
data: {name: csv, file: rows.csv, target: y, numeric: [n]}
model: [linear: $data.classes]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4}
"""


@pytest.mark.parametrize("module", ["click", "yaml", "gradcli.config", "gradcli.engine", "none"])
def test_ctrl_c_in_an_import_ends_quietly(tmp_path: Path, module: str) -> None:
    (tmp_path / "rows.yaml").write_text(ROWS)
    (tmp_path / "rows.csv").write_text("y,n\n" + "a,1\nb,2\n" * 10)
    done = subprocess.run(
        [sys.executable, "-c", AT_IMPORT, module],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if module == "none" else 130)
    assert (tmp_path / "runs").exists() == (module == "none")


def test_ctrl_c_while_the_data_load_leaves_nothing(gradcli: Cli, monkeypatch) -> None:
    monkeypatch.setattr(points.Points, "load", lambda self: signal.raise_signal(signal.SIGINT))
    ended = gradcli("train", "dots.yaml")
    assert (ended.code, ended.err) == (130, "interrupted\n")
    assert not Path("runs").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_another_signal_while_the_data_load_ends_at_once(tmp_path: Path, number: int) -> None:
    raising = f"import signal\npoints.Points.load = lambda self: signal.raise_signal({number:d})"
    assert finish(begin(tmp_path, "train", "dots.yaml", before=raising)).code == -number
    assert not (tmp_path / "runs").exists()


def strike(patch: pytest.MonkeyPatch, owner: Any, name: str, number: int, when: int) -> None:
    """Send the signal in the `when`th call of a function, which then goes on."""
    usual, calls = getattr(owner, name), []

    def struck(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == when:
            signal.raise_signal(number)
        return usual(*arguments, **named)

    patch.setattr(owner, name, struck)


MOMENTS: dict[str, tuple[Any, str, int]] = {
    "the first try": (launch, "preflight", 1),
    "a step": (step.OneStep, "gradients", 2),
    "an update": (step.OneStep, "update", 2),
    "an evaluation": (measuring.Measuring, "figures", 2),
    "the test": (measuring.Measuring, "figures", 4),
    "a save": (atomic, "sync_directory", 10),
    "the log": (loop.Trainer, "_log", 11),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGHUP, 75)]
)
def test_a_signal_leaves_a_checkpoint_that_resumes_to_the_same_weights(
    gradcli: Cli, whole: str, moment: str, number: int, code: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, *MOMENTS[moment][:2], number, MOMENTS[moment][2])
        ended = gradcli("train", "dots.yaml")
    assert ended.code == code, ended.err
    assert f"stopped by {signal.Signals(number).name} after step" in ended.err
    assert f"gradcli resume {only_run()}" in ended.err
    assert not list(only_run().rglob("*.tmp"))
    assert gradcli("resume", "dots", "--json").json["weights_sha256"] == whole


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_second_signal_in_a_save_leaves_at_once(
    gradcli: Cli, whole: str, number: int, code: int
) -> None:
    twice = (
        "import os, signal\n"
        "from gradcli.train import atomic\n"
        "fsync = os.fsync\n"
        "def struck(handle):\n"
        "    if any('step-00000006' in name for _, _, names in os.walk('.') for name in names):\n"
        f"        [signal.raise_signal({number:d}) for _ in range(2)]\n"
        "    fsync(handle)\n"
        "os.fsync = struck\n"
    )
    ended = finish(begin(Path.cwd(), "train", "dots.yaml", "--name", "twice", before=twice))
    assert (ended.code, ended.out) == (code, "")
    assert gradcli("resume", "twice", "--json").json["weights_sha256"] == whole


@pytest.mark.parametrize("command", ["eval", "predict"])
def test_ctrl_c_in_a_reading_command_changes_nothing(
    gradcli: Cli, monkeypatch, command: str
) -> None:
    gradcli("train", "dots.yaml", "-s", "train.epochs=1")
    Path("new.txt").write_text("0.5 0.5\n")
    before = {path: path.read_bytes() for path in only_run().rglob("*") if path.is_file()}
    # The model is there by then: the evaluation or prediction itself is struck.
    strike(monkeypatch, points.PointsSplit, "batch", signal.SIGINT, 1)
    strike(monkeypatch, points.Points, "new_inputs", signal.SIGINT, 1)
    ended = gradcli(command, "last", *(["new.txt"] if command == "predict" else []))
    assert (ended.code, ended.out) == (130, "")
    assert {path: path.read_bytes() for path in only_run().rglob("*") if path.is_file()} == before


def steps_logged(folder: Path) -> int:
    return sum(log.read_text().count('"step"') for log in folder.glob("runs/dots/*/log.jsonl"))


def test_a_stopped_and_continued_process_goes_on(gradcli: Cli) -> None:
    here = Path.cwd()
    process = begin(here, "train", "dots.yaml", "--json", *LONG)
    deadline = time.monotonic() + 60
    while steps_logged(here) < 40 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    seen = steps_logged(here)
    time.sleep(0.2)
    assert steps_logged(here) == seen
    process.send_signal(signal.SIGCONT)
    ended = finish(process)
    assert ended.code == 0
    whole = gradcli("train", "dots.yaml", "--json", "--name", "whole", *LONG).json
    assert ended.json["weights_sha256"] == whole["weights_sha256"]
