"""Whole processes by the wall clock: start-up, and training MNIST to 97 %."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import course
from benchmarks.medians import percentile
from benchmarks.process import COMPETITORS, ROOT
from benchmarks.race import Say

TURNS, QUICK_TURNS = 7, 1
SEEDS, QUICK_SEEDS = (1, 2, 3, 4, 5, 6, 7), (1,)
PATIENCE = 300.0


@dataclass(frozen=True)
class Command:
    """A process to time, and the libraries without which it cannot run."""

    arguments: tuple[str, ...]
    needs: tuple[str, ...]

    def missing(self) -> str:
        """Why it cannot run; empty where it can."""
        absent = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"not installed: {', '.join(absent)}" if absent else ""


def timed(arguments: Iterable[str]) -> tuple[float, str]:
    """Seconds from start to end of a Python process, and what it printed.

    Bytecode may be kept, as it is of every package that was installed: no turn but the first
    compiles our sources.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    began = time.perf_counter()
    ending = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
        check=False,
    )
    seconds = time.perf_counter() - began
    if ending.returncode:
        words = ending.stderr.strip().splitlines()
        raise ChildProcessError(words[-1] if words else f"exit {ending.returncode}")
    return seconds, ending.stdout


def _imports() -> dict[str, Command]:
    return {
        "bare python": Command(("-c", "pass"), ()),
        "import gradcli.engine": Command(("-c", "import gradcli.engine"), ("gradcli",)),
        "import numpy": Command(("-c", "import numpy"), ("numpy",)),
        "import torch": Command(("-c", "import torch"), ("torch",)),
        "import jax, optax": Command(("-c", "import jax, optax"), ("jax", "optax")),
        "gradcli --help": Command(("-m", "gradcli", "--help"), ("gradcli",)),
    }


def _first_steps(file: Path) -> dict[str, Command]:
    code = (
        "from benchmarks.child import Competitor; import sys; "
        "c = Competitor(*sys.argv[1:3]); c.build('W2', sys.argv[3]); c.losses(1)"
    )
    names = ("gradcli eager", "gradcli captured", "torch eager", "torch compile", "jax jit")
    competitors = {name: COMPETITORS[name] for name in names}
    return {
        f"first step, {name}": Command(("-c", code, c.module, c.mode, str(file)), (c.package,))
        for name, c in competitors.items()
    }


def _training(runs: Path) -> dict[str, Command]:
    """The command line from a config to the first step, each time in a run of its own."""
    command = ("-m", "gradcli", "train", "configs/mnist.yaml", "--max-steps", "1")
    arguments = (*command, "--device", "cpu", "--runs", str(runs))
    return {"gradcli train, one step": Command(arguments, ("gradcli",))}


def _choose(commands: dict[str, Command], only: Iterable[str]) -> dict[str, Command]:
    packages = set(only)
    return {n: c for n, c in commands.items() if not packages or set(c.needs) <= packages}


def startup(quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Import, help, a training of one step, the first step of W2: processes, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "W2"
        course.write(course.WORKLOADS["W2"], file)
        every = {**_imports(), **_training(Path(folder) / "runs"), **_first_steps(file)}
        commands = _choose(every, only)
        rows = {n: {"missing": c.missing()} for n, c in commands.items() if c.missing()}
        taking = {name: c for name, c in commands.items() if name not in rows}
        figures = _in_turns(
            {name: _command(c) for name, c in taking.items()},
            range(QUICK_TURNS if quick else TURNS + 1),
            warm=not quick,
        )
    rows |= figures
    _say_rows(rows, say)
    return {"rows": rows}


Timed = Callable[[int], tuple[float, dict[str, Any]]]


def _command(command: Command) -> Timed:
    return lambda turn: (timed(command.arguments)[0], {})


def _in_turns(work: dict[str, Timed], turns: Iterable[int], warm: bool) -> dict[str, Any]:
    """Medians of processes run one after the other; a first turn fills caches and is dropped."""
    times: dict[str, list[float]] = {name: [] for name in work}
    facts: dict[str, list[dict[str, Any]]] = {name: [] for name in work}
    failed: dict[str, str] = {}
    for turn in turns:
        for name, act in work.items():
            if name in failed:
                continue
            try:
                seconds, fact = act(turn)
            except (OSError, subprocess.SubprocessError) as error:
                failed[name] = str(error)[:300]
                continue
            times[name].append(seconds)
            facts[name].append(fact)
    rows: dict[str, Any] = {name: {"missing": why} for name, why in failed.items()}
    for name in work:
        if name not in failed:
            counted = times[name][1:] if warm and len(times[name]) > 1 else times[name]
            rows[name] = _figures(counted, facts[name][-len(counted) :])
    return rows


def _figures(times: list[float], facts: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "seconds": round(statistics.median(times), 4),
        "p10": round(percentile(times, 10), 4),
        "runs": len(times),
    }
    for key in facts[0] if facts else ():
        row[key] = statistics.median(fact[key] for fact in facts)
    return row


def _say_rows(rows: dict[str, Any], say: Say) -> None:
    for name, row in rows.items():
        if "missing" in row:
            say(f"  {name}: takes no part: {row['missing']}")
        else:
            facts = {k: v for k, v in row.items() if k not in ("seconds", "p10", "runs")}
            remarks = "".join(f", {key} {value:g}" for key, value in facts.items())
            say(f"  {name:<28} {row['seconds']:.3f} s (p10 {row['p10']:.3f}){remarks}")


# -- MNIST to 97 % ---------------------------------------------------------------------------------


def _script(name: str) -> Timed:
    def run(seed: int) -> tuple[float, dict[str, Any]]:
        seconds, output = timed((f"benchmarks/{name}", str(seed)))
        facts: dict[str, Any] = json.loads(output.splitlines()[-1])
        return seconds, facts

    return run


def _command_line(steps_of: dict[int, int]) -> Timed:
    """`gradcli train` for as many steps as the script of the same seed needed."""

    def run(seed: int) -> tuple[float, dict[str, Any]]:
        steps = steps_of.get(seed, 1200)
        with tempfile.TemporaryDirectory() as runs:
            values = (f"train.steps={steps}", f"train.seed={seed}")
            overrides = [word for value in values for word in ("-s", value)]
            command = ("-m", "gradcli", "train", "benchmarks/mnist97.yaml", "--threads", "2")
            seconds, _ = timed((*command, "--runs", runs, *overrides))
            status = json.loads(next(Path(runs).glob("*/*/status.json")).read_text())
        return seconds, {"steps": steps, "accuracy": status["metrics"]["test.accuracy"]}

    return run


def mnist97(quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Seconds of whole processes that train to 97 %, one seed after the other."""
    packages = set(only)
    steps_of: dict[int, int] = {}
    script = _script("mnist97_gradcli.py")

    def ours(seed: int) -> tuple[float, dict[str, Any]]:
        seconds, facts = script(seed)
        steps_of[seed] = facts["steps"]
        return seconds, facts

    work: dict[str, Timed] = {}
    rows: dict[str, Any] = {}
    if not packages or "gradcli" in packages:
        work |= {"gradcli script": ours, "gradcli train": _command_line(steps_of)}
    if not packages or "torch" in packages:
        absent = Command((), ("torch",)).missing()
        if absent:
            rows["torch script"] = {"missing": absent}
        else:
            work["torch script"] = _script("mnist97_torch.py")
    rows |= _in_turns(work, QUICK_SEEDS if quick else SEEDS, warm=False)
    for row in rows.values():
        if "accuracy" in row:
            row["same_course"] = row["accuracy"] >= 0.97
    _say_rows(rows, say)
    return {"rows": rows}
