"""`gradcli eval`: measure a run on a split of its data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from gradcli.cli import options
from gradcli.cli.progress import say_result
from gradcli.errors import ConfigError

if TYPE_CHECKING:
    from gradcli.cli.trained import Trained


@click.command("eval")
@click.argument("run")
@click.option(
    "--split", default="test", metavar="NAME", help="train, val or test.  [default: test]"
)
@options.trained
def command(open_run: Callable[[bool], Trained], split: str, as_json: bool) -> None:
    """Measure RUN (a path, a run's name or `last`, with @best, @last or @STEP) on a split."""
    from gradcli.train.evaluate import Evaluation
    from gradcli.train.report import Result
    from gradcli.train.state import weights_sha256

    began = time.monotonic()
    trained = open_run(True)
    splits = trained.job.dataset.splits
    if split not in splits:
        raise ConfigError(
            f"the data has no split '{split}'; it has {', '.join(splits)}",
            notes=("choose one of them with --split",),
        )
    evaluation = Evaluation(trained.job, splits[split], split)
    metrics = evaluation.run()
    result = Result(
        run=str(trained.path),
        status="evaluated",
        steps=trained.meta.step,
        seconds=round(time.monotonic() - began, 3),
        metrics=metrics,
        weights_sha256=weights_sha256(trained.job.model),
        measured_step=trained.meta.step,
        tables=evaluation.tables,
    )
    say_result(result, as_json)
