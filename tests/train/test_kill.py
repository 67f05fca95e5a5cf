"""kill -9 at random moments: the resumed run ends in the same weights, the log stays strict."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny

import gradcli

SCRIPT = Path(tiny.__file__)


def command(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(gradcli.__file__).parent.parent)},
    )


def finish(*arguments: str | Path) -> str:
    process = command(*arguments)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> str:
    return finish("train", tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("seed", range(3))
def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path, whole: str, seed: int) -> None:
    rng = random.Random(seed)
    process = command("train", tmp_path)
    run = wait_for_checkpoint(process, tmp_path)
    time.sleep(rng.random() * 0.05)
    process.kill()
    process.communicate()
    assert finish("resume", run) == whole
    steps = [one["step"] for one in tiny.records(run) if one["event"] == "step"]
    assert steps == list(range(1, 37))
    assert not list(run.rglob("*.tmp"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_process_resumes_the_same_way(tmp_path: Path, whole: str, number: int) -> None:
    process = command("train", tmp_path)
    run = wait_for_checkpoint(process, tmp_path)
    process.send_signal(number)
    process.communicate()
    assert finish("resume", run) == whole


def wait_for_checkpoint(process: subprocess.Popen[str], runs: Path) -> Path:
    """The run, as soon as its first checkpoint stands; an error if there never is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(runs.glob("tiny/*/checkpoints/step-*.safetensors"))
        if found:
            return found[0].parent.parent
        assert process.poll() is None, "ended before its first checkpoint"
        time.sleep(0.002)
    raise TimeoutError
