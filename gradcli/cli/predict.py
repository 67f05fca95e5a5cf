"""`gradcli predict`: what a trained model says of new files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import options, output
from gradcli.errors import ConfigError

if TYPE_CHECKING:
    from gradcli.cli.trained import Trained
    from gradcli.train.generate import Sampling

OF_FILES = ("top", "out")
OF_PROMPT = ("tokens", "temperature", "top_k", "top_p", "seed")


@click.command("predict")
@click.argument("run")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@options.count("--top", "K", "Name the K most probable classes.", 1)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one JSON object a sample to FILE instead of printing lines.",
)
@click.option("--prompt", metavar="TEXT", help="Go on with TEXT; for models of text.")
@options.count("--tokens", "N", "How many characters or bytes follow the prompt.", 300)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="T",
    help="Below 1 what is probable is picked more often, at 0 always.  [default: 1]",
)
@options.count("--top-k", "K", "Pick among the K most probable ones.")
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    metavar="P",
    help="Pick among the fewest that have the probability P together.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    metavar="S",
    help="The same seed gives the same text.  [default: 0]",
)
@options.trained
@click.pass_context
def command(
    ctx: click.Context,
    /,
    open_run: Callable[[], Trained],
    files: tuple[Path, ...],
    top: int,
    out: Path | None,
    prompt: str | None,
    as_json: bool,
    **sampling: Any,
) -> None:
    """Apply RUN to FILES: one line a sample. RUN is a path, a run's name or `last`.

    RUN@best, RUN@last or RUN@STEP names one of its checkpoints.

    A line holds the file, the sample's index in it, the label and its probability; for
    regression the values; for text the token that follows the sample.

    With --prompt a model of text writes on, character by character.
    """
    _check_usage(ctx, bool(files), prompt is not None)
    from gradcli.train.predict import predict

    trained = open_run()
    if prompt is not None:
        from gradcli.train.generate import Sampling

        _write_on(trained, prompt, Sampling(**sampling), as_json)
        return
    if top > 1 and trained.job.dataset.facts.classes is None:
        raise ConfigError(f"--top {top}: this run predicts values, there are no classes to rank")
    state = trained.meta.state
    rows = (
        row for file in files for row in predict(trained.job, state, file, top, output.say_aside)
    )
    if out is not None:
        _write(out, rows, as_json)
    elif as_json:
        head = {"run": str(trained.path), "step": trained.meta.step}
        output.say_json({**head, "predictions": list(rows)})
    else:
        for row in rows:
            output.say(line(row))


def _check_usage(ctx: click.Context, files: bool, prompt: bool) -> None:
    """Files or a prompt, and no option that says something about the other one."""
    if files == prompt:
        raise click.UsageError("predict needs files, or --prompt, and not both", ctx)
    for name in OF_FILES if prompt else OF_PROMPT:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} goes with {'files' if prompt else '--prompt'}", ctx)


def _write_on(trained: Trained, prompt: str, how: Sampling, as_json: bool) -> None:
    """The prompt and what the model writes behind it, as it comes."""
    from gradcli.train.generate import continued, remark

    pieces = continued(trained.job, trained.meta.state, prompt, how)
    note = remark(trained.job)
    if note:
        output.say_aside(note)
    if as_json:
        text = "".join(pieces)
        answer = {
            "run": str(trained.path),
            "step": trained.meta.step,
            "prompt": prompt,
            "text": text,
        }
        output.say_json(answer)
        return
    output.say_part(prompt)
    for piece in pieces:
        output.say_part(piece)
    output.say()


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
