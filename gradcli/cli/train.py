"""`gradcli train`: a new run from a config."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from gradcli.cli import options, output
from gradcli.cli.progress import Progress, say_result


@click.command("train")
@click.argument("path", metavar="CONFIG", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="The run's name, in place of the config's.")
@click.option(
    "--max-steps",
    type=click.IntRange(min=0),
    metavar="N",
    help="Stop after N steps; `gradcli resume` goes on from there.",
)
@options.overrides
@options.runs
@options.common
def command(
    path: Path,
    name: str | None,
    max_steps: int | None,
    overrides: tuple[str, ...],
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Train a new run from CONFIG; it lies in DIR/<name>/<date-time-number>."""
    from gradcli.config import build, load
    from gradcli.train.directory import check_name

    if name is not None:
        check_name(name)
    config = load(path, overrides, options.room(device))
    output.warnings(config.warnings)
    job = build(config)

    from gradcli.train.launch import Circumstances, start
    from gradcli.train.loop import check_expectations
    from gradcli.train.signals import Signals

    used = options.compute_on(device, threads)
    for note in job.dataset.notes:
        output.say_aside(note)
    if name is not None:
        job = replace(job, name=name, resolved={**job.resolved, "name": name})
    circumstances = Circumstances(argv=sys.argv, device=device, threads=used)
    progress = Progress(as_json, device)
    job = job.to(device)
    try:
        with Signals() as signals:
            result = start(job, runs, circumstances, progress, signals, max_steps)
    finally:
        progress.close()
    say_result(result, as_json)
    check_expectations(job, result)
