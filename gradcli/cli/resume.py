"""`gradcli resume`: go on with a run exactly where it stopped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gradcli.cli import completion, options, output
from gradcli.cli.progress import carry_out

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.config.trust import Trust
    from gradcli.train.directory import RunDirectory
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter, Result
    from gradcli.train.signals import Signals
    from gradcli.train.value_origins import ValueOrigin


@click.command("resume")
@click.argument("run", shell_complete=completion.runs)
@click.option(
    "--allow-data-change",
    is_flag=True,
    help="Continue even if the data files have changed since the checkpoint.",
)
@click.option(
    "--allow-nonfinite",
    is_flag=True,
    help="Continue even if the checkpoint's weights contain NaN or infinity.",
)
@options.no_report
@options.overrides
@options.trust_code
@options.verify_data
@options.runs
@options.common
@options.isa
def command(
    run: str,
    allow_data_change: bool,
    allow_nonfinite: bool,
    no_report: bool,
    overrides: tuple[str, ...],
    trust_code: bool,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Continue RUN: a path, a run's name (the newest of that name) or `last`.

    Use -s to train longer (-s train.epochs=20), or to log and save more or less often. A change
    to the coming steps (optim.lr, schedule, train.clip and others) is recorded as a fork.
    """
    from gradcli.engine import distributed
    from gradcli.train import directory as directories
    from gradcli.train import ranks
    from gradcli.train.run_name import find

    def open_run() -> RunDirectory:
        path, which = find(runs, run)
        if which is not None:
            directories.check_newest(path, which)
        return directories.RunDirectory(path)

    with ranks.directory(distributed.group(), open_run) as directory:
        from gradcli.config.changes import changes

        carry_on(
            directory,
            overrides,
            changes(overrides, directory.path),
            options.trust(trust_code),
            Manner(as_json, threads, device, no_report, allow_data_change, allow_nonfinite),
        )


class Manner(NamedTuple):
    """How a run goes on: the options of the command that makes it do so."""

    as_json: bool
    threads: int | None
    device: str
    no_report: bool
    allow_data_change: bool = False
    allow_nonfinite: bool = False
    max_steps: int | None = None


def carry_on(
    directory: RunDirectory,
    overrides: Sequence[str],
    keys: Collection[str],
    trust: Trust,
    manner: Manner,
    origins: Mapping[str, ValueOrigin] | None = None,
) -> None:
    """Continue a run with its config overridden; an override of one of `keys` is a fork.

    Overrides come from the command line unless `origins` says otherwise.
    """
    from gradcli.config import build
    from gradcli.config.trained import load_to_resume
    from gradcli.engine import distributed

    path, room = directory.path, options.room(manner.device)
    with distributed.at_work():
        config = load_to_resume(path, overrides, room, manner.allow_data_change, trust)
        job = build(config)
    free = room.free()  # before the data is there
    if origins:
        from gradcli.train.value_origins import with_origins

        job = replace(job, origins=with_origins(job.origins, origins))

    from gradcli.train.launch import find_result, resume
    from gradcli.train.plan_file import complete

    def go_on(job: Job, thread_count: int, reporter: Reporter, signals: Signals) -> Result:
        del thread_count
        result = find_result(path, job)
        if result is None:
            try:
                return resume(
                    job,
                    directory,
                    reporter,
                    signals,
                    keys=keys,
                    allow_data_change=manner.allow_data_change,
                    allow_nonfinite=manner.allow_nonfinite,
                    max_steps=manner.max_steps,
                )
            finally:
                complete(directory, partial(plan_sheet, config, manner.device, free), reporter.note)
        longer = "; with train.epochs or train.steps beside it there is" if keys else ""
        output.say_aside(f"{path} is finished: nothing to do{longer}")
        return result

    carry_out(go_on, job, manner.as_json, manner.threads, manner.device, manner.no_report)


def plan_sheet(config: Config, device: str, free: int | None) -> dict[str, Any]:
    """What `plan --json` says of a config, for the run's plan.json."""
    from gradcli.bench.sheet import sheet

    return sheet(config, device, free)
