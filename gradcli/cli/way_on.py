"""What can be done with a run that was trained: lines to paste, on stderr below the summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli.cli import output
from gradcli.errors import GradcliError
from gradcli.train.directory import best_and_last
from gradcli.train.run_name import find

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Result

RUNS = Path("runs")  # where commands look without --runs


def say_way_on(job: Job, result: Result) -> None:
    """Which checkpoint is the best, and the commands that use it."""
    path = Path(result.run)
    run = run_argument(path)
    best, last = best_and_last(path)
    if best is not None and best == result.measured_step:
        judge = job.settings.judge or ""
        figure = f"{judge} {result.metrics[judge]:.4f}, " if judge in result.metrics else ""
        behind = f"; the last is step {last}" if last != best else ""
        output.say_rows_aside([("best", f"{figure}step {best}{behind}")])
    which = "" if best is None else "@best" if best == result.measured_step else "@last"
    output.say_commands_aside("next", _commands(job, result, run, which))


def _commands(job: Job, result: Result, run: str, which: str) -> Iterator[str]:
    if result.status == "stopped":
        yield f"gradcli resume {shlex.quote(run)}"
    splits = job.dataset.splits
    split = next(name for name in ("test", "val", "train") if name in splits)
    checkpoint = shlex.quote(run + which)
    yield f"gradcli eval {checkpoint}" + ("" if split == "test" else f" --split {split}")
    if not getattr(job.dataset.source, "reads_new_files", True):
        return
    of_text = getattr(job.dataset.facts, "unit", None) is not None
    yield f"gradcli predict {checkpoint} " + ('--prompt "TEXT"' if of_text else "FILE")


def run_argument(path: Path) -> str:
    """How a command line names a run: by its name where that means this one, else by its path."""
    name = path.parent.name
    try:
        if find(RUNS, name).path.resolve() == path.resolve():
            return name
    except GradcliError:
        pass
    return str(path)
