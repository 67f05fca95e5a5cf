"""Ranks: the exact sum against MPI_Allreduce, steps on two ranks against two threads, the model."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import ranks_model

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 900  # seconds for one job
ROUNDS = 5  # interleaved trainings of each kind


class Config(NamedTuple):
    """What is trained, how many steps, and how many numbers its ranks add up in each."""

    path: str
    steps: int
    numbers: int


CONFIGS = {
    "mnist": Config("configs/mnist.yaml", 2000, 203_530),
    "mnist_cnn": Config("configs/mnist_cnn.yaml", 400, 18_378),
    "shakespeare_gpt": Config("configs/long/shakespeare_gpt.yaml", 150, 2_684_928),
}


def ranks(quick: bool, _only: tuple[str, ...], say: Callable[[str], None]) -> dict[str, Any]:
    """Sums on 2 ranks, steps of three configs, and what the model says of them at 2 and 4."""
    found: dict[str, Any] = {"mpi": "", "sums": [], "steps": {}, "model": {}}
    found["sums"] = json.loads(
        _output(2, ["-m", "benchmarks.ranks_sums", *(["--quick"] if quick else [])])
    )
    for row in found["sums"]:
        times = ", ".join(f"{name} {ms:.3f}" for name, ms in row["ms"].items())
        say(f"  sum of {row['length']:,}: {times} ms")
    doctor = {
        count: json.loads(_output(count, ["-m", "gradcli", "doctor", "--json"])) for count in (2, 4)
    }
    found["mpi"] = doctor[2]["mpi"]
    found["line"] = dict(
        zip(("latency_ms", "bytes_per_ms"), ranks_model.line_of(doctor[2]["sums"]), strict=True)
    )
    for name, config in CONFIGS.items():
        found["steps"][name] = steps = _steps(config, 1 if quick else ROUNDS)
        say(f"  {name}: " + ", ".join(f"{way} {ms:.3f}" for way, ms in steps.items()) + " ms")
        found["model"][name] = {
            f"{count} ranks": ranks_model.step_ms(
                steps["1 rank x 1 thread"],
                count,
                len(os.sched_getaffinity(0)),
                config.numbers * ranks_model.NUMBER,
                doctor[count]["sums"],
            )
            for count in doctor
        }
    return found


def _steps(config: Config, rounds: int) -> dict[str, float]:
    """Medians of interleaved trainings, in milliseconds a step."""
    ways = {
        "1 rank x 1 thread": (0, 1),
        "1 rank x 2 threads": (0, 2),
        "2 ranks x 1 thread": (2, 1),
        "4 ranks x 1 thread": (4, 1),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (count, threads) in ways.items():
            times[name].append(_step_ms(config, count, threads))
    return {name: statistics.median(some) for name, some in times.items()}


def _step_ms(config: Config, count: int, threads: int) -> float:
    """Of one training: by its log."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["train", str(ROOT / config.path), "--max-steps", str(config.steps)]
        options = ["--threads", str(threads), "--json"]
        _output(count, ["-m", "gradcli", *arguments, *options], Path(folder))
        logs = [*Path(folder).glob("runs/*/*/log.jsonl")]
        return milliseconds([json.loads(line) for line in logs[0].read_text().splitlines()])


def milliseconds(log: Sequence[Mapping[str, Any]]) -> float:
    """Of a step, by the events of a log; the first ones, which record the step, do not count."""
    rows = [(row["step"], row["seconds"]) for row in log if row["event"] == "step"][1:]
    return statistics.median(float((t - s) / (b - a) * 1e3) for (a, s), (b, t) in pairwise(rows))


def _output(count: int, arguments: list[str], cwd: Path = ROOT) -> str:
    """What Python prints on so many ranks (0: without a launcher)."""
    launcher = [_mpirun(), "-n", str(count)] if count else []
    done = subprocess.run(
        [*launcher, sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise ChildProcessError(
            f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
        )
    return done.stdout


def _mpirun() -> str:
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.is_file() else shutil.which("mpirun") or "mpirun"
