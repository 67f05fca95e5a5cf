"""`gradcli eval`: measure a run on a split of its data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.cli.progress import say_result
from gradcli.errors import ConfigError, ErrorGroup

if TYPE_CHECKING:
    from gradcli.config.trained import TrainedRun
    from gradcli.data import Split
    from gradcli.train.job import Job


@click.command("eval")
@click.argument("run", shell_complete=completion.runs)
@click.option(
    "--split",
    shell_complete=completion.choices("train", "val", "test"),
    default="test",
    metavar="NAME",
    help="Evaluate on train, val or test.  [default: test]",
)
@click.option(
    "--data",
    type=options.path,
    metavar="FILE|FOLDER",
    help="Evaluate on new data with targets, in the format of the training data; that data itself "
    "is not needed.",
)
@options.verify_data
@options.with_run
@options.isa
@click.pass_context
def command(
    ctx: click.Context,
    /,
    open_run: Callable[[bool], TrainedRun],
    split: str,
    data: Path | None,
    as_json: bool,
) -> None:
    """Evaluate RUN on a split of its data.

    RUN is a path, a run's name or `last`; RUN@best, RUN@last or RUN@STEP names a checkpoint.
    """
    if data is not None and options.is_written(ctx, "split"):
        raise click.UsageError("--split is of the training data; it does not go with --data", ctx)
    from gradcli.cli.weights import weights
    from gradcli.engine import distributed
    from gradcli.train.baseline import baseline_of
    from gradcli.train.evaluate import Evaluation
    from gradcli.train.report import Measured, Result
    from gradcli.train.state import weights_sha256

    began = time.monotonic()
    with distributed.at_work():
        if data is None:
            run = _with_its_data(open_run)
            samples = _split(run, split)
        else:
            run = open_run(False)
            split, samples = "data", _new_split(run, data)
    evaluation = Evaluation(run.job, samples, split)
    metrics = evaluation.run()
    result = Result(
        run=str(run.path),
        status="evaluated",
        steps=run.meta.step,
        seconds=round(time.monotonic() - began, 3),
        metrics=metrics,
        weights_sha256=weights_sha256(run.job.model),
        measured_step=run.meta.step,
        tables=evaluation.tables,
        classes=run.job.dataset.facts.labels,
        baseline=baseline_of(run.job, metrics, {split: samples}),
        absent=_absent(run.job, split, samples),
        measured=Measured(weights(run), split, samples.size, str(data or "")),
    )
    say_result(result, as_json)


def _absent(job: Job, split: str, samples: Split) -> Mapping[str, Sequence[str]]:
    """The classes without a sample in the split; known already for the run's own splits."""
    from gradcli.data.targets import absent_classes

    if split in job.dataset.splits:
        return {name: classes for name, classes in job.absent.items() if name == split}
    return absent_classes(job.dataset.facts, {split: samples})


def _with_its_data(open_run: Callable[[bool], TrainedRun]) -> TrainedRun:
    """Open the run with its training data; if that is gone, the error names another way."""
    from gradcli.config.trained import NO_DATA

    try:
        return open_run(True)
    except ErrorGroup as group:
        for error in group.errors:
            if error.code == NO_DATA:
                error.notes += ("or measure on other data with targets: eval RUN --data FILE",)
        raise


def _split(run: TrainedRun, name: str) -> Split:
    """A split of the run's own data."""
    splits = run.job.dataset.splits
    if not splits:
        raise ConfigError(
            "a published model has no data of its own; name some to measure it on with --data FILE"
        )
    if name not in splits:
        raise ConfigError(
            f"the data has no split '{name}'; it has {', '.join(splits)}",
            notes=("choose one of them with --split, or name new data with --data",),
        )
    return splits[name]


def _new_split(run: TrainedRun, data: Path) -> Split:
    """Read new data with targets onto the device of the run."""
    from gradcli.data import staging

    new = run.job.dataset.read_split(data)
    splits, notes = staging.placed({"data": new.split}, run.device)
    for note in (*new.notes, *notes):
        output.say_aside(note)
    return splits["data"]
