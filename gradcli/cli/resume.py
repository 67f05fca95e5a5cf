"""`gradcli resume`: go on with a run exactly where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import options, output
from gradcli.cli.progress import carry_out
from gradcli.errors import ConfigError

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter, Result
    from gradcli.train.signals import Signals


@click.command("resume")
@click.argument("run")
@click.option(
    "--allow-data-change",
    is_flag=True,
    help="Go on although data files are not those of the checkpoint.",
)
@click.option(
    "--allow-nonfinite",
    is_flag=True,
    help="Go on although the checkpoint's weights hold NaN or infinity.",
)
@options.overrides
@options.runs
@options.common
@options.isa
def command(
    run: str,
    allow_data_change: bool,
    allow_nonfinite: bool,
    overrides: tuple[str, ...],
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Go on with RUN: a path, a run's name (its newest) or `last`.

    Only the length and how often is logged and saved can change: -s train.epochs=20.
    """
    from gradcli.train import directory as directories

    check_overrides(overrides)
    path, which = directories.find(runs, run)
    if which is not None:
        directories.check_newest(path, which)
    with directories.RunDirectory(path) as directory:
        from gradcli.config import build
        from gradcli.config.trained import load_run

        job = build(load_run(path, overrides, options.room(device)))

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
                    allow_data_change=allow_data_change,
                    allow_nonfinite=allow_nonfinite,
                )
            output.say_aside(f"{path} is finished: nothing to do")
            return result

        carry_out(go_on, job, as_json, threads, device)


def check_overrides(overrides: tuple[str, ...]) -> None:
    """Refuse what would make it another training."""
    from gradcli.train.compare import FREE

    for override in overrides:
        key = override.partition("=")[0].strip()
        if key not in FREE:
            raise ConfigError(
                f"-s {override}: that is a new run; a resumed one can only change "
                f"{', '.join(sorted(FREE))}",
                code="E125",
                notes=("start it with: gradcli train",),
            )
