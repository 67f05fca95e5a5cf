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
code = run(sys.argv[2:])
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
with open(sys.argv[1], "w") as file:  # what wait4 tells begins with the memory of the parent
    file.write(peak)
sys.exit(code)
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
    with tempfile.TemporaryFile() as err, tempfile.NamedTemporaryFile("r") as peak:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, peak.name, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        text = err.read().decode("utf-8", "replace")
        kilobytes = int(peak.read() or 2 << 20)  # killed before it could say
    seconds = usage.ru_utime + usage.ru_stime
    return Cost(process.returncode, text, seconds, kilobytes / 1024)


def assert_cheap(cost: Cost) -> None:
    """No traceback, and no more than a bad file may cost."""
    assert "Traceback" not in cost.err
    assert cost.megabytes < MEMORY, cost
    assert cost.seconds < SECONDS, cost
