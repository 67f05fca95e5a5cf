"""`gradcli report`: one page of HTML on a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError

if TYPE_CHECKING:
    from gradcli.cli.progress import ProgressReporter
    from gradcli.report.times import LayerTime

STEPS = 15  # measurements, of which the median counts
FORMS = ("html", "csv", "tensorboard")


@click.command("report")
@click.argument("run", shell_complete=completion.runs)
@click.option(
    "-o",
    "--output",
    "target",
    type=options.path,
    metavar="FILE",
    help="Write to FILE.  [default: report.html in the run]",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    metavar="|".join(FORMS),
    shell_complete=completion.choices(*FORMS),
    default="html",
    help="Write an HTML page, or the log as metrics.csv or TensorBoard event files.  "
    "[default: html]",
)
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Add the time of each layer to the page; this needs the data.",
)
@options.trust_code
@options.runs
@options.json
@options.basic
def command(
    run: str,
    target: Path | None,
    form: str,
    timed: bool,
    trust_code: bool,
    runs: Path,
    as_json: bool,
) -> None:
    """Write an HTML report on RUN: curves, results, model and config.

    RUN is a path, a run's name (the newest of that name) or `last`. The page is a single file
    that needs no network.
    """
    from gradcli.report.run_files import RunFiles
    from gradcli.train.run_name import find

    if timed and form != "html":
        raise click.UsageError("--time measures for the page, and --to writes something else")
    path, which = find(runs, run)
    if which is not None:
        raise ConfigError(
            f"the page is of a whole run, not of a checkpoint as in {ascii(run)[1:-1]}",
            notes=(f"leave the '@{ascii(which)[1:-1]}' away",),
        )
    files = RunFiles(path)
    if form == "html":
        from gradcli.report.written import keep_others, write_page

        if target is not None:
            keep_others("-o", target)
        file = write_page(files, target, _times(files.path, trust_code) if timed else ())
    else:
        from gradcli.report.export import export

        file = export(files, form, target)
    for problem in files.problems:
        output.say_aside(f"warning: {problem}")
    if as_json:
        output.say_json({"run": str(files.path), "file": str(file), "problems": files.problems})
    else:
        output.say(f"wrote {file}", "good")


def _times(run: Path, trust_code: bool) -> Sequence[LayerTime]:
    """Time each layer of the run's training step on the CPU."""
    from gradcli.bench import report
    from gradcli.config import build
    from gradcli.config.trained import load_run
    from gradcli.report.times import layer_times

    config = load_run(run, trust=options.trust(trust_code))
    options.compute_on("cpu", None)
    busy = report.disturbed(report.conditions("cpu"))
    if busy:
        output.say_aside(busy)
    figures = report.of_config(build(config), config.model, STEPS, 0, compare=False, device="cpu")
    if "layers" not in figures:  # a step that cannot be taken apart
        output.say_aside(
            f"warning: layers have no time of their own: {figures['why_not_captured']}"
        )
    return layer_times(figures.get("layers", []))


@contextlib.contextmanager
def leaving_page(progress: ProgressReporter, asked_for: bool) -> Iterator[None]:
    """Write the page of the run that began meanwhile, however it ended; rank 0 alone has begun one.

    Everything that counts is saved by then, so what stands in the way is a warning.
    """
    try:
        yield
    finally:
        if asked_for and progress.run is not None:
            _leave_page(Path(progress.run))


def _leave_page(run: Path) -> None:
    try:
        if not run.is_dir():  # it had nothing to keep
            return
        from gradcli.report.run_files import RunFiles
        from gradcli.report.written import write_page

        file = write_page(RunFiles(run))
    except (Exception, KeyboardInterrupt) as error:
        reason = str(error) or type(error).__name__
        output.say_aside(f"warning: the page of the run is not written: {reason}")
    else:
        output.say_rows_aside([("report", str(file))])
