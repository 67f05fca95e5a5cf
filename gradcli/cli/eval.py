"""`gradcli eval`: measure a run on a split of its data."""

from __future__ import annotations

import time
from pathlib import Path

import click

from gradcli.cli import options, output
from gradcli.cli.progress import say_result
from gradcli.cli.trained import open_trained
from gradcli.errors import ConfigError


@click.command("eval")
@click.argument("run")
@click.option(
    "--split", default="test", metavar="NAME", help="train, val or test.  [default: test]"
)
@options.checkpoint
@options.runs
@options.common
def command(
    run: str,
    split: str,
    checkpoint: str,
    partial: bool,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Measure RUN (a path, a run's name or `last`) on a split of its data."""
    from gradcli.train.directory import find

    path = find(runs, run)

    from gradcli.train.evaluate import Evaluation
    from gradcli.train.report import Result
    from gradcli.train.state import weights_sha256

    options.compute_on(device, threads)
    began = time.monotonic()
    trained = open_trained(path, checkpoint, device, partial=partial)
    for note in trained.notes:
        output.say_aside(note)
    splits = trained.job.dataset.splits
    if split not in splits:
        raise ConfigError(
            f"the data has no split '{split}'; it has {', '.join(splits)}",
            notes=("choose one of them with --split",),
        )
    metrics = Evaluation(trained.job, splits[split], split).run()
    result = Result(
        run=str(path),
        status="evaluated",
        steps=trained.meta.step,
        seconds=round(time.monotonic() - began, 3),
        metrics=metrics,
        weights_sha256=weights_sha256(trained.job.model),
    )
    say_result(result, as_json)
