"""Ranks: the exact sum against MPI_Allreduce, steps on two ranks against two threads, the model."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.ranks_model import ALONE, COUNTS, THREADS, on_ranks, share
from gradcli.engine.device.cpu import available_threads

ROOT = Path(__file__).resolve().parents[1]
CURE = "pip install 'gradcli[mpi]', and an MPI such as `pip install mpich`"
LIMIT = 300  # seconds for one job; it takes a few of them
ROUNDS = 5  # interleaved trainings of each kind


class Config(NamedTuple):
    """What is trained, for how many steps, and after how many of them its log tells the time."""

    path: str
    steps: int
    log_every: int


CONFIGS = {
    "mnist": Config("configs/mnist.yaml", 1000, 50),
    "mnist_cnn": Config("configs/mnist_cnn.yaml", 400, 20),
    "shakespeare_gpt": Config("configs/long/shakespeare_gpt.yaml", 24, 2),
}


class Way(NamedTuple):
    """How a config is trained: ranks (0: without a launcher), threads, the batch's divisor."""

    ranks: int
    threads: int
    divisor: int


WAYS = {
    ALONE: Way(0, 1, 1),
    THREADS: Way(0, 2, 1),
    **{on_ranks(count): Way(count, 1, 1) for count in COUNTS},
    **{share(count): Way(0, 1, count) for count in COUNTS},
}


def ranks(quick: bool, _only: tuple[str, ...], say: Callable[[str], None]) -> dict[str, Any]:
    """Sums on 2 ranks, and of three configs the steps on ranks and what a model says of them.

    Raises:
        OSError: mpirun or mpi4py is absent, or a job fails.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise ModuleNotFoundError(f"mpi4py is not installed: {CURE}")
    sums = ["-m", "benchmarks.ranks_sums", *(["--quick"] if quick else [])]
    result: dict[str, Any] = {"sums": json.loads(_output(2, sums))}
    for row in result["sums"]:
        times = ", ".join(f"{name} {ms:.3f}" for name, ms in row["ms"].items())
        say(f"  sum of {row['length']:,}: {times} ms")
    doctor = {n: json.loads(_output(n, ["-m", "gradcli", "doctor", "--json"])) for n in COUNTS}
    result |= {
        "versions": {"mpi4py": version("mpi4py"), "MPI": doctor[COUNTS[0]]["mpi"]},
        "cores": available_threads(),
        "doctor": {str(count): report["sums"] for count, report in doctor.items()},
        "steps": {},
    }
    for name, config in CONFIGS.items():
        result["steps"][name] = row = _steps(config, quick)
        medians = (f"{way} {statistics.median(ms):.3f}" for way, ms in row["ms"].items())
        say(f"  {name}: {', '.join(medians)} ms")
    return result


def _steps(config: Config, quick: bool) -> dict[str, Any]:
    """Of interleaved trainings: milliseconds a step, and how many numbers their ranks add up."""
    check = _output(0, ["-m", "gradcli", "check", config.path, "--json"])
    (facts,) = json.loads(check)["configs"]
    batch, steps = facts["resolved"]["train"]["batch"], config.steps // (4 if quick else 1)
    settings = ["--max-steps", str(steps), "-s", f"train.log_every={config.log_every}"]
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(1 if quick else ROUNDS):
        for name, way in WAYS.items():
            more = ["-s", f"train.batch={batch // way.divisor}", "--threads", str(way.threads)]
            command = ["-m", "gradcli", "train", str(ROOT / config.path), "--json"]
            times[name].append(_step_ms(way.ranks, [*command, *settings, *more]))
    return {"numbers": facts["parameters"], "ms": times}


def _step_ms(count: int, command: list[str]) -> float:
    """Of one training: by its log."""
    with tempfile.TemporaryDirectory() as folder:
        _output(count, command, Path(folder))
        logs = [*Path(folder).glob("runs/*/*/log.jsonl")]
        return milliseconds([json.loads(line) for line in logs[0].read_text().splitlines()])


def milliseconds(log: Sequence[Mapping[str, Any]]) -> float:
    """Of a step, by the events of a log; the first ones, which record the step, do not count."""
    rows = [(row["step"], row["seconds"]) for row in log if row["event"] == "step"][1:]
    return statistics.median(float((t - s) / (b - a) * 1e3) for (a, s), (b, t) in pairwise(rows))


def _output(count: int, arguments: list[str], cwd: Path = ROOT) -> str:
    """What Python prints on so many ranks (0: without a launcher)."""
    launcher = [_mpirun(), "-n", str(count)] if count else []
    try:
        process = subprocess.run(
            [*launcher, sys.executable, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildProcessError(f"`{' '.join(arguments)}` took more than {LIMIT} s") from error
    if process.returncode:
        output = f"{process.stdout}{process.stderr}".strip()
        raise ChildProcessError(
            f"`{' '.join(arguments)}` ended with {process.returncode}: {output}"
        )
    return process.stdout


def _mpirun() -> str:
    """The launcher beside this Python, or else that of the system."""
    beside = Path(sys.executable).with_name("mpirun")
    launcher = str(beside) if beside.is_file() else shutil.which("mpirun")
    if launcher is None:
        raise FileNotFoundError(f"there is no mpirun: {CURE}")
    return launcher
