"""`python -m benchmarks`: measures, writes a dated JSON file, says what passes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks import (
    before,
    course,
    data,
    data_files,
    generation,
    gpu,
    grow,
    grow_cases,
    grow_ratios,
    log_cost,
    measure,
    names,
    op_cases,
    ops,
    process,
    race,
    ranks,
    ranks_page,
    results,
    scoreboard,
    scoreboard_page,
    shipped,
    startup,
    tables,
    targets,
    tree,
)
from gradcli.cli.options import device_name
from gradcli.devices import GPUS
from gradcli.registry import did_you_mean

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
CLUSTERS = ROOT / "docs" / "clusters.md"
SCOREBOARD = ROOT / "docs" / "scoreboard.md"
EXIT_MISSED = 6

Measured = Callable[[bool, tuple[str, ...], race.Say], dict[str, Any]]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="A look: few chunks, no figures to keep.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=results.FOLDER,
    help="Folder of the result files.  [default: benchmarks/results]",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["gradcli", "torch", "jax", "numpy"]),
    help="Leave the other libraries out; may be repeated.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=race.Effort.seconds,
    metavar="S",
    help="Longest time to race one workload; it ends when all have enough chunks.  [default: 60]",
)
@click.option("--strict", is_flag=True, help="Exit with 6 where a target is missed.")
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Measure gradcli against torch, jax and NumPy, interleaved, as ratios of medians.

    Two threads, float32. Each competitor has its own process; moments in which the machine gave
    less than two cores are dropped. `all` takes about twenty minutes.
    """
    context.obj = options
    if context.invoked_subcommand not in ("gpu", "scoreboard"):
        process.two_processors()


def _finish(options: dict[str, Any], kind: str, result: dict[str, Any]) -> None:
    """Write the file, say the verdicts."""
    verdicts = targets.VERDICTS[kind](result)
    result["verdicts"] = [verdict.as_json() for verdict in verdicts]
    path = results.write(options["out"], results.document(kind, result, options["quick"]))
    click.echo(f"{kind}: targets")
    for verdict in verdicts:
        click.echo(verdict.sentence())
    click.echo(f"written: {path}")
    if options["strict"] and any(verdict.passed is False for verdict in verdicts):
        raise SystemExit(EXIT_MISSED)


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(list(course.WORKLOADS)))
@click.pass_obj
def workloads(options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Training steps of W1..W8, or of those named."""
    picks = names or tuple(course.WORKLOADS)
    effort = race.QUICK if options["quick"] else race.Effort(seconds=options["seconds"])
    result = measure.workloads(picks, effort, options["only"], click.echo)
    _finish(options, "workloads", result)


def _command(kind: str, measured: Measured, what: str) -> click.Command:
    """A command that takes no more than the options of all."""

    @main.command(kind, help=what)
    @click.pass_obj
    def command(options: dict[str, Any]) -> None:
        _finish(options, kind, measured(options["quick"], options["only"], click.echo))

    return command


SINGLE_RACES = (
    _command("matmul", measure.matmul, "Matrix products of 14 shapes."),
    _command("generation", generation.generation, "Tokens a second of a small GPT."),
    _command("memory", measure.memory, "Peak memory of a training process."),
    _command("startup", startup.startup, "Time to import, to help, to the first step."),
    _command("mnist97", startup.mnist97, "From a cold process to 97 % of MNIST's test images."),
)


@main.command("configs")
@click.argument("names", nargs=-1, type=click.Choice(list(shipped.files())))
@click.pass_obj
def configs(options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Train each of configs/, or those named, to its `expect:`; --quick leaves out configs/long.

    Takes an hour, and is no race. Rows of the newest result stay for what is not trained now.
    """
    there = shipped.files(long=not options["quick"])
    paths = {name: path for name, path in shipped.files().items() if name in (names or there)}
    before = results.newest(options["out"], "configs") or {}
    _finish(options, "configs", shipped.shipped(paths, before, click.echo))


@main.command("log")
@click.argument("names", nargs=-1, type=click.Choice(list(shipped.files())))
@click.pass_obj
def log(options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Measure what `grad_norm` in the log costs each of configs/, or those named."""
    paths = {name: path for name, path in shipped.files().items() if name in names or not names}
    _finish(options, "log", log_cost.log_cost(paths, options["quick"], click.echo))


@main.command("data")
@click.argument("names", nargs=-1, type=click.Choice(list(data_files.CASES)))
@click.pass_obj
def data_(options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Start trainings on tables, arrays, texts and pictures, or on those named, twice each.

    Beside pandas, NumPy, Pillow and tokenizers, which write the data into a temporary folder: 2 GB.
    Takes half an hour.
    """
    try:
        result = data.data(names, options["quick"], click.echo)
    except (OSError, subprocess.SubprocessError) as error:
        raise click.ClickException(str(error)) from None
    _finish(options, "data", result)


@main.command("ops")
@click.argument("codes", metavar="[CODE]...", nargs=-1)
@click.pass_obj
def ops_(options: dict[str, Any], codes: tuple[str, ...]) -> None:
    """Single eager calls beside torch, or those of these CODEs: four sizes, two element types.

    benchmarks/op_cases.py lists the CODEs. Takes half an hour. `--quick` takes the smallest and the
    largest size in float32.
    """
    for code in codes:
        if code not in op_cases.OPS:
            hint = did_you_mean(code, op_cases.OPS, "benchmarks/op_cases.py lists the calls")
            raise click.BadParameter(f"no call is '{code}'; {hint}", param_hint="CODE")
    _finish(options, "ops", ops.ops(codes, options["quick"], options["only"], click.echo))


@main.command("grow")
@click.argument("axes", nargs=-1, type=click.Choice(list(grow_cases.AXES)))
@click.pass_obj
def grow_(options: dict[str, Any], axes: tuple[str, ...]) -> None:
    """Training steps of models that grow, along all axes or those named, beside torch.

    Takes some minutes.
    """
    _finish(options, "grow", grow.grow(axes, options["quick"], options["only"], click.echo))


@main.command("text")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("names", nargs=-1, required=True, type=click.Choice(list(shipped.files())))
@click.pass_obj
def text(options: dict[str, Any], file: Path, names: tuple[str, ...]) -> None:
    """Train these configs of text on FILE instead, and let them write on."""
    paths = {name: shipped.files()[name] for name in names}
    _finish(options, "text", shipped.on_text(paths, file, click.echo))


@main.command("before")
@click.argument("revision")
@click.option("--pairs", type=click.IntRange(min=1), default=before.PAIRS, show_default=True)
@click.pass_obj
def before_(options: dict[str, Any], revision: str, pairs: int) -> None:
    """Compare this tree with REVISION: weights of all configs, times of steps and calls.

    Builds REVISION in build/before/, in an environment of its own. Takes half an hour on a machine
    with nothing else to do. --quick trains two steps of the short configs and times two pairs.
    """
    try:
        past = tree.revision(revision)
        result = before.compare(past, tree.present(), options["quick"], pairs, click.echo)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    _finish({**options, "out": tree.BUILDS}, "before", result)


@main.command("names")
@click.argument("revision")
@click.pass_obj
def names_(options: dict[str, Any], revision: str) -> None:
    """Say what REVISION offers by name and this tree lacks: functions, ops, keys, options.

    Builds REVISION as `before` does. With --strict it exits with 6 where something is missing.
    """
    try:
        past, now = (names.of_tree(there) for there in (tree.revision(revision), tree.present()))
    except OSError as error:
        raise click.ClickException(str(error)) from None
    sentences = names.missing(past, now)
    for sentence in sentences:
        click.echo(sentence)
    click.echo(f"{len(past)} names in {revision}, {len(now)} now; missing: {len(sentences)}")
    if options["strict"] and sentences:
        raise SystemExit(EXIT_MISSED)


@main.command("ranks")
@click.option("--predict", is_flag=True, help="Write docs/clusters.md by the newest result.")
@click.option(
    "--page", type=click.Path(path_type=Path, dir_okay=False), default=CLUSTERS, hidden=True
)
@click.pass_obj
def ranks_(options: dict[str, Any], predict: bool, page: Path) -> None:
    """Measure sums and steps on ranks of MPI, beside a model of a step.

    Needs the extra `mpi` and an MPI; takes ten minutes.
    """
    if predict:
        ranks_page.update(page, options["out"])
        click.echo(f"written: {page}")
        return
    try:
        result = ranks.ranks(options["quick"], options["only"], click.echo)
    except (OSError, ImportError) as error:
        raise click.ClickException(str(error)) from None
    _finish(options, "ranks", result)


@main.group("gpu")
@click.option("--device", metavar="|".join(GPUS), default="cuda", callback=device_name)
@click.pass_obj
def of_a_gpu(options: dict[str, Any], device: str) -> None:
    """Check and measure gradcli on a GPU, beside torch where it is installed."""
    options["device"] = device


def _gpu_command(part: str, measured: gpu.Part) -> None:
    @of_a_gpu.command(part, help=measured.__doc__)
    @click.pass_obj
    def command(options: dict[str, Any]) -> None:
        result = measured(options["device"], options["quick"], click.echo)
        _finish(options, f"gpu-{part}", result)


for _part, _measured in gpu.PARTS.items():
    _gpu_command(_part, _measured)


@main.command("all")
@click.pass_context
def all_(context: click.Context) -> None:
    """All races, one after the other."""
    for command in (workloads, *SINGLE_RACES):
        context.invoke(command)


@main.command("scoreboard")
@click.argument("names", nargs=-1, type=click.Choice(list(scoreboard.ROWS)))
@click.option(
    "--page", type=click.Path(path_type=Path, dir_okay=False), default=SCOREBOARD, hidden=True
)
@click.pass_obj
def scoreboard_(options: dict[str, Any], names: tuple[str, ...], page: Path) -> None:
    """Try to break gradcli in each way, or in those named, and write docs/scoreboard.md.

    Takes hours. What is not tried now keeps its figures.
    """
    before = results.newest(options["out"], "scoreboard") or {}
    rows = before.get("rows", {})
    for name in names or tuple(scoreboard.ROWS):
        try:
            rows = {**rows, name: scoreboard.measure(name, click.echo)}
        except ChildProcessError as error:
            raise click.ClickException(str(error)) from None
        results.write(options["out"], results.document("scoreboard", {"rows": rows}, False))
        page.write_text(scoreboard_page.page(rows), encoding="utf-8")
    click.echo(f"written: {page}")


@main.command()
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), default=PAGE)
@click.pass_obj
def table(options: dict[str, Any], page: Path) -> None:
    """Write the tables of docs/performance.md from the newest results, and its plots beside it."""
    tables.update(page, options["out"])
    newest = results.newest(options["out"], "grow")
    if newest is not None:
        page.with_name(tables.PLOTS).write_text(grow_ratios.plots(newest), encoding="utf-8")
    click.echo(f"written: {page}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
