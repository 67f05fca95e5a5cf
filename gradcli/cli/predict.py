"""`gradcli predict`: what a trained model says of new files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.config.trained import TrainedRun
    from gradcli.train.generate import Sampling

OF_FILES = ("top", "out", "overwrite")
OF_PROMPT = (
    "tokens",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "stop",
    "stop_token",
    "ignore_end",
    "samples",
    "seed",
    "cache_bf16",
)


def _not_empty(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    if "" in texts:
        raise click.BadParameter("an empty text would end it at once", ctx, parameter)
    return texts


@click.command("predict")
@click.argument("run", shell_complete=completion.runs)
@click.argument("files", nargs=-1, type=options.path)
@options.count("--top", "K", "Show the K likeliest classes.", 1)
@click.option(
    "--out",
    type=options.path,
    metavar="FILE",
    help="Write the predictions to FILE.jsonl (one JSON object per line) or FILE.csv.",
)
@click.option("--overwrite", is_flag=True, help="Let --out replace an existing file.")
@click.option("--prompt", metavar="TEXT", help="Continue TEXT with a text model.")
@options.count("--tokens", "N", "Generate N tokens, such as characters.", 300)
@click.option(
    "--temperature",
    type=options.FiniteRange(min=0),
    default=1.0,
    metavar="T",
    help="Lower is more conservative; 0 always picks the likeliest token.  [default: 1]",
)
@options.count("--top-k", "K", "Sample from the K likeliest tokens.")
@click.option(
    "--top-p",
    type=options.FiniteRange(min=0, max=1, min_open=True),
    metavar="P",
    help="Sample from the smallest set of tokens whose probabilities add up to P.",
)
@click.option(
    "--repetition-penalty",
    type=options.FiniteRange(min=0, min_open=True),
    default=1.0,
    metavar="R",
    help="Divide the logits of repeated tokens by R (multiply negative ones).  [default: 1]",
)
@click.option(
    "--stop",
    multiple=True,
    callback=_not_empty,
    metavar="TEXT",
    help="Stop before TEXT; may be repeated.",
)
@click.option(
    "--stop-token",
    multiple=True,
    callback=_not_empty,
    metavar="TOKEN",
    help="Stop at this token of the tokenizer; may be repeated.",
)
@click.option(
    "--ignore-end",
    is_flag=True,
    help="Continue past the tokenizer's end-of-document token.",
)
@options.count("--samples", "N", "Generate N texts in one batch.", 1)
@click.option(
    "--seed",
    type=int,
    default=0,
    metavar="S",
    help="Seed of the sampling; text i of --samples uses S + i.  [default: 0]",
)
@click.option(
    "--cache-bf16",
    is_flag=True,
    help="Cache keys and values in bfloat16: half the memory, but rounded and slower.",
)
@options.with_run
@click.pass_context
def command(
    ctx: click.Context,
    /,
    open_run: Callable[[bool], TrainedRun],
    files: tuple[Path, ...],
    top: int,
    out: Path | None,
    overwrite: bool,
    prompt: str | None,
    as_json: bool,
    **sampling: Any,
) -> None:
    """Predict every sample in FILES with RUN, one line per sample.

    RUN is a path, a run's name or `last`; RUN@best, RUN@last or RUN@STEP names a checkpoint.

    A line has the file, the sample's index in it, the label and its probability (for
    regression, the values; for text, the token that follows the sample).

    With --prompt, a text model continues the given text.
    """
    _check_usage(ctx, bool(files), prompt is not None)
    from gradcli.cli import predictions
    from gradcli.train.predict import Predictor

    if out is not None:
        predictions.check_target(out, overwrite)
    run = open_run(False)
    _say_weights(run, as_json)
    if prompt is not None:
        from gradcli.train.generate import Sampling

        _write_on(run, prompt, Sampling(**sampling), as_json)
        return
    if top > 1 and run.job.dataset.facts.classes is None:
        raise ConfigError(f"--top {top}: this run predicts values, there are no classes to rank")
    predictor = Predictor(run.job)
    predictions.check_apart(out, predictor, files)
    records = predictor.files(files, top, output.say_aside)
    if out is not None:
        count = predictions.write(out, records)
        if as_json:
            output.say_json({"out": str(out), "samples": count})
        else:
            output.say(f"{quantity(count, 'sample')} in {out}")
    elif as_json:
        output.say_json({**_head(run), "predictions": list(records)})
    else:
        width = output.width(sys.stdout)
        for record in records:
            output.say(predictions.line(record, width))


def _say_weights(run: TrainedRun, as_json: bool) -> None:
    """Print which weights answer; a JSON answer says it itself."""
    from gradcli.cli.weights import weights

    if not as_json:
        output.say_aside(f"{run.path}: {weights(run)}")


def _head(run: TrainedRun) -> dict[str, Any]:
    """The first keys of a JSON answer: which weights gave it."""
    return {"run": str(run.path), "step": run.meta.step}


def _check_usage(ctx: click.Context, files: bool, prompt: bool) -> None:
    """Files or a prompt, and no option that says something about what is not there."""
    if files == prompt:
        raise click.UsageError("predict needs files, or --prompt, and not both", ctx)
    for name in OF_FILES if prompt else OF_PROMPT:
        if options.is_written(ctx, name):
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} goes with {'files' if prompt else '--prompt'}", ctx)
    if ctx.params["overwrite"] and ctx.params["out"] is None:
        raise click.UsageError("--overwrite goes with --out", ctx)


def _write_on(run: TrainedRun, prompt: str, how: Sampling, as_json: bool) -> None:
    """Print the prompt and its continuation; the first text appears as it is generated."""
    from gradcli.train.generate import Texts, cache_note

    texts = Texts(run.job, prompt, how)
    note = cache_note(run.job)
    if note:
        output.say_aside(note)
    began = time.perf_counter()
    if as_json:
        whole = ["".join(pieces) for pieces in zip(*texts, strict=True)]
        seconds = time.perf_counter() - began
        answer = {"text": whole[0]} if how.samples == 1 else {"texts": whole}
        figures = {"tokens": texts.tokens, "seconds": round(seconds, 4)}
        output.say_json({**_head(run), "prompt": prompt, **answer, **figures})
        return
    rest: list[list[str]] = [[] for _ in range(1, how.samples)]
    _begin_text(prompt, how, 0)
    for piece, *more in texts:
        output.say_part(piece)
        for text, part in zip(rest, more, strict=True):
            text.append(part)
    seconds = time.perf_counter() - began
    output.say()
    for number, text in enumerate(rest, 1):
        _begin_text(prompt, how, number)
        output.say_part("".join(text))
        output.say()
    rate = texts.tokens / seconds
    output.say_aside(f"{quantity(texts.tokens, 'token')} in {seconds:.2f} s, {rate:,.0f} a second")


def _begin_text(prompt: str, how: Sampling, number: int) -> None:
    """The prompt, below a line that tells several texts apart."""
    if how.samples > 1:
        output.say(f"--- {number + 1} of {how.samples}, seed {how.seed + number} ---")
    output.say_part(prompt)
