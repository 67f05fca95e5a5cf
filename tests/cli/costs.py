"""A whole command line in a process of its own, and what that took: CPU seconds and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gradcli as package

MEMORY, SECONDS = 300, 10  # megabytes; CPU seconds, ten times what is meant, on a slow machine
_RUN = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from gradcli.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Cost:
    """How a command ended, its CPU seconds and the most megabytes that it held."""

    code: int
    err: str
    seconds: float
    megabytes: float


def cost_of(folder: Path, *arguments: str) -> Cost:
    """`gradcli ARGUMENTS` in a folder."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        text = err.read().decode("utf-8", "replace")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    seconds = usage.ru_utime + usage.ru_stime
    return Cost(process.returncode, text, seconds, usage.ru_maxrss / unit)


def assert_cheap(cost: Cost) -> None:
    """No traceback, and no more than a bad file may cost."""
    assert "Traceback" not in cost.err
    assert cost.megabytes < MEMORY, cost
    assert cost.seconds < SECONDS, cost
