"""`gradcli resume`: go on with a run exactly where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.cli.launchers import refuse_several
from gradcli.cli.progress import carry_out

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter, Result
    from gradcli.train.signals import Signals


@click.command("resume")
@click.argument("run", shell_complete=completion.runs)
@click.option(
    "--allow-data-change",
    is_flag=True,
    help="Continue even if the data files are not those of the checkpoint.",
)
@click.option(
    "--allow-nonfinite",
    is_flag=True,
    help="Continue even if the checkpoint's weights hold NaN or infinity.",
)
@options.overrides
@options.trust_code
@options.runs
@options.common
@options.isa
def command(
    run: str,
    allow_data_change: bool,
    allow_nonfinite: bool,
    overrides: tuple[str, ...],
    trust_code: bool,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Continue RUN: a path, a run's name (the newest of that name) or `last`.

    -s may change the length of the training, and how often it logs and saves: -s
    train.epochs=20. What changes the steps to come (optim.lr, schedule, train.clip and others)
    is recorded as a fork.
    """
    refuse_several()
    from gradcli.train import directory as directories
    from gradcli.train.run_name import find

    path, which = find(runs, run)
    if which is not None:
        directories.check_newest(path, which)
    with directories.RunDirectory(path) as directory:
        from gradcli.config import build
        from gradcli.config.changes import changes
        from gradcli.config.trained import load_to_resume

        keys = changes(overrides, path)
        room, trust = options.room(device), options.trust(trust_code)
        config = load_to_resume(path, overrides, room, allow_data_change, trust)
        job = build(config)

        from gradcli.train.launch import finished, resume

        def go_on(job: Job, thread_count: int, reporter: Reporter, signals: Signals) -> Result:
            del thread_count
            result = finished(path, job)
            if result is None:
                return resume(
                    job,
                    directory,
                    reporter,
                    signals,
                    keys=keys,
                    allow_data_change=allow_data_change,
                    allow_nonfinite=allow_nonfinite,
                )
            longer = "; with train.epochs or train.steps beside it there is" if keys else ""
            output.say_aside(f"{path} is finished: nothing to do{longer}")
            return result

        carry_out(go_on, job, as_json, threads, device)
