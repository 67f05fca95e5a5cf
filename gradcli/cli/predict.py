"""`gradcli predict`: what a trained model says of new files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gradcli.cli import options, output
from gradcli.cli.trained import open_trained
from gradcli.errors import ConfigError


@click.command("predict")
@click.argument("run")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.checkpoint
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=1,
    metavar="K",
    help="Name the K most probable classes.  [default: 1]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one JSON object a sample to FILE instead of printing lines.",
)
@options.runs
@options.common
def command(
    run: str,
    files: tuple[Path, ...],
    checkpoint: str,
    partial: bool,
    top: int,
    out: Path | None,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Apply RUN (a path, a run's name or `last`) to FILES: one line a sample.

    A line holds the file, the sample's index in it, the label and its probability; for
    regression the values; for text the token that follows the sample.
    """
    from gradcli.train.directory import find

    path = find(runs, run)

    from gradcli.train.predict import predict

    options.compute_with(threads)
    trained = open_trained(path, checkpoint, partial=partial)
    for note in trained.notes:
        output.say_aside(note)
    if top > 1 and trained.job.dataset.facts.classes is None:
        raise ConfigError(f"--top {top}: this run predicts values, there are no classes to rank")
    state = trained.meta.state
    rows = (
        row for file in files for row in predict(trained.job, state, file, top, output.say_aside)
    )
    if out is not None:
        _write(out, rows, as_json)
    elif as_json:
        output.say_json({"run": str(path), "step": trained.meta.step, "predictions": list(rows)})
    else:
        for row in rows:
            output.say(line(row))


def line(row: dict[str, Any]) -> str:
    """file, index, then label and probability of each class named, or the values; by tabs."""
    from gradcli.data.files import shown

    cells = [shown(row["file"]), str(row["index"])]
    for one in row.get("top", []):
        cells += [shown(one["label"]), f"{one['probability']:.4f}"]
    cells += [f"{value:.6g}" for value in row.get("values", [])]
    return "\t".join(cells)


def _write(out: Path, rows: Iterator[dict[str, Any]], as_json: bool) -> None:
    from gradcli.errors import RunError
    from gradcli.train.atomic import write_text

    lines = [json.dumps(row, allow_nan=False) for row in rows]
    try:
        write_text(out, "".join(one + "\n" for one in lines))
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}") from error
    if as_json:
        output.say_json({"out": str(out), "samples": len(lines)})
    else:
        output.say(f"{len(lines)} samples in {out}")
