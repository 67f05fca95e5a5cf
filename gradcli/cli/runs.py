"""`gradcli runs`: all runs at a glance; `runs clean` removes old ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ErrorGroup, GradcliError, RunError
from gradcli.table import Column, lines
from gradcli.wording import byte_size, quantity

if TYPE_CHECKING:
    from gradcli.train.run_cleaning import Cleaning
    from gradcli.train.run_list import RunSummary

# A test compares them with run_list.STATES.
STATES = ("running", "stopped", "interrupted", "failed", "finished", "killed", "unknown")
SORTS = ("age", "name", "status", "step", "size", "val.loss", "val.accuracy")
AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

_name = click.option(
    "--name",
    metavar="NAME",
    shell_complete=completion.run_names,
    help="Only runs with this name.",
)


@click.group("runs", invoke_without_command=True)
@_name
@click.option(
    "--status",
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"Only runs in this state: {', '.join(STATES)}.",
)
@click.option(
    "--sort",
    "column",
    metavar="FIGURE",
    shell_complete=completion.choices(*SORTS),
    help="Sort by a figure such as val.accuracy (best first), age, name, status, step or size.  "
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
    """List all runs, newest first; `gradcli runs clean` removes old ones."""
    if ctx.invoked_subcommand is not None:
        return
    from gradcli.train.run_list import runs_in, select, sorted_by

    every = runs_in(runs)
    selection = select(every, name, runs)
    selection = sorted_by([run for run in selection if status in (None, run.status)], column)
    if as_json:
        output.say_json({"runs": [_as_object(run) for run in selection]})
    elif selection:
        _show(selection, column)
    elif every:
        output.say(f"none of {quantity(len(every), 'run')} in {runs} is {status}")
    else:
        output.say(f"{runs} holds no runs yet; `gradcli train` makes one")


@command.command("clean", short_help="Remove old runs; without --yes, only list them.")
@options.count("--keep", "N", "Keep the N newest runs of each name.", least=0)
@_name
@click.option("--yes", is_flag=True, help="Remove the runs instead of listing them.")
@options.runs
@options.json
@options.basic
@click.pass_context
def clean(
    ctx: click.Context, keep: int | None, name: str | None, yes: bool, runs: Path, as_json: bool
) -> None:
    """Remove old runs.

    Runs in use, the best run of each name and runs that others started from always stay.
    """
    if keep is None:
        raise click.UsageError("--keep says how many runs of each name stay, such as --keep 3", ctx)
    outer = ctx.parent.params if ctx.parent else {}  # `runs --name X clean`
    _refuse_choices_of_the_list(ctx, outer)
    runs = runs if options.is_written(ctx, "runs") else outer.get("runs", runs)
    name = name or outer.get("name")
    from gradcli.train.run_cleaning import plan, remove, remove_left_over
    from gradcli.train.run_list import runs_in, select

    every = runs_in(runs)
    select(every, name, runs)
    cleaning = plan(every, keep, name)
    removals: list[RunSummary] = []
    problems: list[GradcliError] = []
    for run in cleaning.go if yes else ():
        try:
            if remove(run.path):
                removals.append(run)
        except RunError as error:
            problems.append(error)
    if yes:
        remove_left_over(runs)
    if as_json or outer.get("as_json"):
        output.say_json(_cleaning_as_object(cleaning, removals))
    else:
        _show_cleaning(cleaning, removals if yes else None, runs)
    if problems:
        raise ErrorGroup(problems)


def _refuse_choices_of_the_list(ctx: click.Context, outer: Mapping[str, Any]) -> None:
    """`runs --status X clean` would remove runs that the user means to keep."""
    for option, parameter in (("--status", "status"), ("--sort", "column")):
        if outer.get(parameter) is not None:
            raise click.UsageError(
                f"{option} is for the list of `gradcli runs`, not for `runs clean`: leave it out",
                ctx,
            )


def _cleaning_as_object(cleaning: Cleaning, removals: Sequence[RunSummary]) -> dict[str, Any]:
    removed = {run.path for run in removals}
    return {
        "runs": [
            {"run": str(run.path), "bytes": run.size, "removed": run.path in removed}
            for run in cleaning.go
        ],
        "kept": [{"run": str(run.path), "why": reason} for run, reason in cleaning.stay],
    }


def _show_cleaning(cleaning: Cleaning, removals: Sequence[RunSummary] | None, runs: Path) -> None:
    selection = cleaning.go if removals is None else removals
    word = "would remove" if removals is None else "removed"
    for run in selection:
        output.say(f"{word} {run.path}, {run.status}, {byte_size(run.size)}")
    for run, reason in cleaning.stay:
        output.say(f"kept {run.path}: {reason}")
    total = f"{quantity(len(selection), 'run')}, {byte_size(sum(run.size for run in selection))}"
    if not selection:
        output.say(f"nothing to remove in {runs}")
    elif removals is None:
        output.say(f"{total}; with --yes they are removed")
    else:
        output.say(f"removed {total}")


def _as_object(run: RunSummary) -> dict[str, Any]:
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


def _show(runs: list[RunSummary], column: str | None) -> None:
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
    first, *body = lines(columns, rows, output.width(sys.stdout))
    output.say(first, "heading")
    for line in body:
        output.say(line)


def _row(run: RunSummary, column: str | None, now: datetime) -> tuple[str, ...]:
    figure = (column and run.figure(column)) or run.best
    steps = "?" if run.step is None else str(run.step)
    return (
        run.name,
        run.path.name,
        run.status,
        steps if run.steps is None else f"{steps}/{run.steps}",
        f"{figure.metric} {figure.value:.4g}" if figure else "-",
        age((now - run.created).total_seconds()) if run.created else "?",
        byte_size(run.size),
    )


def age(seconds: float) -> str:
    """`3 d`, `5 h`, `12 min`, `40 s`; a run of tomorrow's clock is 0 s old."""
    for unit, name in AGES:
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return "0 s"
