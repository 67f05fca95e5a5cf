"""`gradcli runs`: all runs at a glance; `runs clean` removes old ones."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.table import Column, lines
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.run_list import Run

# A test compares them with run_list.STATES.
STATES = ("running", "stopped", "interrupted", "failed", "finished", "killed", "unknown")
SORTS = ("age", "name", "status", "step", "size", "val.loss", "val.accuracy")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

_name = click.option(
    "--name",
    metavar="NAME",
    shell_complete=completion.run_names,
    help="Only runs of this name.",
)


@click.group("runs", invoke_without_command=True)
@_name
@click.option(
    "--status",
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"Only runs of this state: {', '.join(STATES)}.",
)
@click.option(
    "--sort",
    "column",
    metavar="FIGURE",
    shell_complete=completion.choices(*SORTS),
    help="A figure such as val.accuracy, the best first, or age, name, status, step, size.  "
    "[default: age]",
)
@options.runs
@options.json
@options.basic
@click.pass_context
def command(
    ctx: click.Context,
    name: str | None,
    status: str | None,
    column: str | None,
    runs: Path,
    as_json: bool,
) -> None:
    """List all runs, the newest first; `gradcli runs clean` removes old ones."""
    if ctx.invoked_subcommand is not None:
        return
    from gradcli.train.run_list import named, runs_in, sorted_by

    every = runs_in(runs)
    chosen = named(every, name, runs)
    chosen = sorted_by([run for run in chosen if status in (None, run.status)], column)
    if as_json:
        output.say_json({"runs": [_as_object(run) for run in chosen]})
    elif chosen:
        _show(chosen, column)
    elif every:
        output.say(f"none of {quantity(len(every), 'run')} in {runs} is {status}")
    else:
        output.say(f"{runs} holds no runs yet; `gradcli train` makes one")


def _as_object(run: Run) -> dict[str, Any]:
    best = run.best
    return {
        "run": str(run.path),
        "name": run.name,
        "status": run.status,
        "step": run.step,
        "steps": run.steps,
        "best": best and {"metric": best.metric, "value": best.value},
        "metrics": dict(run.metrics),
        "created": run.created and run.created.isoformat(timespec="seconds"),
        "bytes": run.size,
    }


def _show(runs: list[Run], column: str | None) -> None:
    now = datetime.now(UTC)
    rows: list[tuple[str, ...]] = [("name", "run", "state", "step", "best figure", "age", "size")]
    rows += [_row(run, column, now) for run in runs]
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    columns = (
        Column(widths[0], "name"),
        Column(widths[1], "name", gap=2, rank=1),
        Column(widths[2], "label", gap=2),
        Column(widths[3], gap=2, rank=3),
        Column(widths[4], "label", gap=2),
        Column(widths[5], gap=2, rank=2),
        Column(widths[6], gap=2, rank=4),
    )
    first, *others = lines(columns, rows, output.width(sys.stdout))
    output.say(first, "heading")
    for line in others:
        output.say(line)


def _row(run: Run, column: str | None, now: datetime) -> tuple[str, ...]:
    figure = (column and run.figure(column)) or run.best
    steps = "?" if run.step is None else str(run.step)
    return (
        run.name,
        run.path.name,
        run.status,
        steps if run.steps is None else f"{steps}/{run.steps}",
        f"{figure.metric} {figure.value:.4g}" if figure else "-",
        age((now - run.created).total_seconds()) if run.created else "?",
        size(run.size),
    )


def age(seconds: float) -> str:
    """`3 d`, `5 h`, `12 min`, `40 s`; a run of tomorrow's clock is 0 s old."""
    for unit, name in AGES:
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return "0 s"


def size(count: float) -> str:
    """`512 B`, `1.5 MiB`."""
    for unit in UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {UNITS[-1]}"
