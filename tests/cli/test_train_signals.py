"""Signals and races, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import points
import pytest

import gradcli

LONG = ("-s", "train.epochs=60", "-s", "train.checkpoint_every=50")


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "dots.yaml").write_text(points.CONFIG)
    return subprocess.Popen(
        [sys.executable, points.__file__, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(gradcli.__file__).parent.parent)},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def wait_for_step(folder: Path, process: subprocess.Popen[str], step: int) -> Path:
    """The run, once its log has reached `step`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for log in folder.glob("runs/dots/*/log.jsonl"):
            if f'"step": {step},' in log.read_text():
                return log.parent
        time.sleep(0.005)
    raise AssertionError(process.communicate())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("whole")
    code, out, err = ended(begin(folder, "train", "dots.yaml", "--json", *LONG))
    assert code == 0, err
    return json.loads(out)["weights_sha256"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_stopped_training_resumes_to_the_same_weights(tmp_path, whole, number, code) -> None:
    process = begin(tmp_path, "train", "dots.yaml", *LONG)
    run = wait_for_step(tmp_path, process, 20)
    process.send_signal(number)
    stopped = ended(process)
    assert stopped[0] == code
    assert "gradcli resume runs/dots/" in stopped[2]
    status = json.loads((run / "status.json").read_text())
    assert status["status"] == {75: "stopped", 130: "interrupted"}[code]
    assert status["saved"] == status["step"]
    found = ended(begin(tmp_path, "resume", "last", "--json"))
    assert json.loads(found[1])["weights_sha256"] == whole


def test_two_resumes_at_once_make_each_step_once(tmp_path: Path, whole: str) -> None:
    code, _, err = ended(begin(tmp_path, "train", "dots.yaml", "--max-steps", "4", *LONG))
    assert code == 0, err
    both = [begin(tmp_path, "resume", "last", "--json") for _ in range(2)]
    results = sorted(ended(process) for process in both)
    assert json.loads(results[0][1])["weights_sha256"] == whole
    # The loser meets the lock, or comes so late that the winner has finished.
    assert results[1][0] == 7 or "nothing to do" in results[0][2] + results[1][2]
    assert results[1][0] == 0 or "in use by process" in results[1][2]
    (log,) = tmp_path.glob("runs/dots/*/log.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [one["step"] for one in records if one["event"] == "step"]
    assert steps == list(range(1, 361))


def test_two_trainings_at_once_get_a_directory_each(tmp_path: Path) -> None:
    both = [begin(tmp_path, "train", "dots.yaml", "--json") for _ in range(2)]
    found = [json.loads(ended(process)[1]) for process in both]
    assert found[0]["run"] != found[1]["run"]
    assert found[0]["weights_sha256"] == found[1]["weights_sha256"]


def test_a_reader_that_went_away_ends_it_quietly(tmp_path: Path) -> None:
    process = begin(tmp_path, "train", "dots.yaml")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert "Traceback" not in err
    (run,) = (tmp_path / "runs" / "dots").iterdir()
    assert json.loads((run / "status.json").read_text())["status"] == "finished"
