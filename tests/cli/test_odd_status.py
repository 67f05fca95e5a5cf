"""A finished run whose status.json says what no run writes: it goes on, or has nothing to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from points import Ended, gradcli, only_run
from sealed import metadata, rewrite

__all__ = ["gradcli"]

Command = Callable[..., Ended]
HUGE = 10**400
LINE = """\
gradcli: 1
name: dots
data: {name: csv, file: line.csv, target: y, numeric: [x], task: regression}
model: [linear: 1]
loss: mse
optim: {name: sgd, lr: 0.001}
train: {epochs: 1, batch: 8}
"""


@pytest.mark.parametrize(
    "odd",
    [
        {"metrics": []},
        {"metrics": {"val.loss": None, "": 1}},
        {"seconds": "long"},
        {"seconds": None},
        {"seconds": float("nan")},
        {"seconds": HUGE},
        {"step": None},
        {"step": "16"},
        {"skipped": []},
        {"weights_sha256": {}},
        {"measured_step": True},
        {"baseline": {"answer": 1, "metrics": {}, "unbeaten": [[], {}]}},
        {"baseline": {"answer": "a", "metrics": {"val.gone": 1.0}, "unbeaten": ["val.gone"]}},
        {
            "baseline": {
                "answer": "deep",
                "metrics": reduce(lambda inner, _: [inner], range(300), 1),
            }
        },
        {"steps": HUGE},
        {"status": []},
    ],
    ids=repr,
)
def test_a_resume_passes_over_it(gradcli: Command, odd: dict[str, Any]) -> None:
    assert gradcli("train", "dots.yaml").code == 0
    path = only_run() / "status.json"
    right = json.loads(path.read_text())
    path.write_text(json.dumps({**right, **odd}))
    ended = gradcli("resume", str(only_run()), "--json")
    assert (ended.code, ended.json["steps"]) == (0, right["steps"]), ended.err
    assert ended.json["weights_sha256"] in (right["weights_sha256"], "")
    path.write_text(json.dumps({**right, **odd}))
    assert gradcli("resume", str(only_run())).code == 0


@pytest.mark.parametrize("name", ["status.json", "manifest.json", "best", "last"])
def test_a_pipe_in_place_of_a_file_of_a_run_is_not_waited_for(gradcli: Command, name: str) -> None:
    Path("line.csv").write_text("x,y\n" + "".join(f"{x},{x}\n" for x in range(40)))
    Path("line.yaml").write_text(LINE)
    assert gradcli("train", "line.yaml").code == 0
    (only_run() / name).unlink(missing_ok=True)
    os.mkfifo(only_run() / name)
    for command in ("eval", "resume"):  # in processes of their own, which can be killed
        line = [sys.executable, "-m", "gradcli", command, str(only_run()), "--device", "cpu"]
        ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", {"x": float("nan")}),
        ("schedule", {"best": float("inf")}),
        ("metrics", {"val.loss": float("nan")}),
        ("seconds", float("inf")),
        ("seconds", HUGE),
        ("watched", HUGE),
        ("stale", HUGE),
        ("evaluated", True),
        ("best", {"metric": "val.accuracy", "value": HUGE, "step": 5}),
        ("best", {"metric": "val.accuracy", "value": float("nan"), "step": 5}),
    ],
)
def test_a_checkpoint_with_what_cannot_be_written_again_is_refused(
    gradcli: Command, field: str, value: object
) -> None:
    assert gradcli("train", "dots.yaml").code == 0
    for path in (only_run() / "checkpoints").iterdir():
        rewrite(path, {**metadata(path.read_bytes()), field: value})
    for command in (("resume", "-s", "train.epochs=4"), ("eval", "--split", "val")):
        ended = gradcli(command[0], str(only_run()), *command[1:])
        assert ended.code == 7
        assert f"the metadata has no usable '{field}'" in ended.err


def test_metadata_that_is_too_deep_to_be_copied_is_refused(gradcli: Command) -> None:
    assert gradcli("train", "dots.yaml").code == 0
    deep = reduce(lambda inner, _: {"in": inner}, range(300), {})
    for path in (only_run() / "checkpoints").iterdir():
        rewrite(path, {**metadata(path.read_bytes()), "config": deep})
    for command in (("resume", "-s", "train.epochs=4"), ("eval", "--split", "val")):
        ended = gradcli(command[0], str(only_run()), *command[1:])
        assert ended.code == 7
        assert "unreadable metadata: nested deeper than 200 levels" in ended.err
