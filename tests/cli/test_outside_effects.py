"""What a training on the CPU does outside of its run: it starts no process and writes no file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Notes what Python is asked for, from its first line on; printed when the command has ended.
WATCHED = """
import json, os, sys
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn",
             "os.spawn", "pty.spawn")
PATHS = {"os.mkdir": [0], "os.remove": [0], "os.rename": [0, 1], "os.link": [0, 1], "os.rmdir": [0],
         "os.symlink": [0, 1], "os.truncate": [0], "os.chmod": [0], "os.utime": [0],
         "shutil.rmtree": [0], "tempfile.mkstemp": [0], "tempfile.mkdtemp": [0]}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
processes, paths = [], []
def watch(event, arguments):
    if event in PROCESSES:
        processes.append([event, repr(arguments[:2])])
    elif event in PATHS:
        names = [arguments[at] for at in PATHS[event]]
        paths.extend(str(name) for name in names if not isinstance(name, int))  # no open file
    elif event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        if (arguments[2] or 0) & WRITES:
            paths.append(os.fsdecode(arguments[0]))
sys.addaudithook(watch)
from gradcli.cli.main import run
code = run(sys.argv[1:])
print(json.dumps({"code": code, "processes": processes, "paths": paths}), file=sys.__stdout__)
"""


@pytest.fixture
def watched(tmp_path: Path):
    """`watched("train", ...)`: what the command asked the system for, and its exit code."""

    def call(*arguments: str) -> dict[str, list[str]]:
        ended = subprocess.run(
            [sys.executable, "-B", "-c", WATCHED, *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "temporary")},
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    return call


def test_a_training_starts_no_process_and_writes_in_its_run_alone(watched, tmp_path) -> None:
    runs = tmp_path / "runs"
    short = ("-s", "train.epochs=1", "-s", "train.batch=5000", "-s", "expect=null")
    fresh = ("train", "configs/mnist.yaml", "--max-steps", "1", *short)
    for command in (fresh, ("resume", "last")):
        seen = watched(*command, "--runs", str(runs))
        assert seen["code"] == 0
        assert seen["processes"] == []
        assert seen["paths"]
        outside = [one for one in seen["paths"] if not Path(one).is_relative_to(runs)]
        assert outside == []
