"""`gradcli bench`: how fast the kernels are, or the training step of a config."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output

if TYPE_CHECKING:
    from gradcli.train.job import Job

TOLERANCE = 5.0  # percent


def _percent(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,4}(?:\.\d{1,6})?) ?%", value)
    if not match:
        raise click.BadParameter(
            f"a tolerance is a percentage such as 5%, got '{value}'", ctx, parameter
        )
    return float(match[1])


@click.command("bench")
@click.argument("config", required=False, type=options.path, shell_complete=completion.configs)
@options.count("--steps", "N", "Measure each item N times and report the median.", 30)
@options.count("--top", "N", "List the N slowest kernel calls.", 15, least=0)
@click.option(
    "--compare",
    type=click.Choice(["torch"]),
    help="Run the same step in PyTorch too, alternating with gradcli.",
)
@click.option(
    "--against",
    type=options.path,
    metavar="FILE",
    help="Compare with the earlier output of --json; exit 6 if anything is slower.",
)
@click.option(
    "--tolerance",
    metavar="P%",
    callback=_percent,
    help="Slowdown that --against accepts.  [default: 5%]",
)
@options.overrides
@options.trust_code
@options.common
def command(
    config: Path | None,
    steps: int,
    top: int,
    compare: str | None,
    against: Path | None,
    tolerance: float | None,
    overrides: tuple[str, ...],
    trust_code: bool,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Benchmark the kernels or, with CONFIG, its training step by layer and by kernel call."""
    _check_usage(config, overrides, compare, against, tolerance)
    from gradcli.bench import against as earlier
    from gradcli.bench import report, tables, torch_model

    if compare:
        torch_model.must_be_installed()
    before = earlier.read(against) if against else None
    options.compute_on(device, threads)
    result = report.conditions(device)
    if report.disturbed(result):
        output.say_aside(report.disturbed(result))
    if config is None:
        _same_conditions(against, before, result)
        result |= report.of_kernels(steps, device)
    else:
        layers, job = _build(config, overrides, device, trust_code)
        result |= report.facts(str(config), job)
        _same_conditions(against, before, result)
        result |= report.of_config(
            job, layers, steps, top, compare=compare is not None, device=device
        )
    figures = earlier.compared(against, before, result) if against and before else []
    if before:
        result["against"] = [figure.as_json() for figure in figures]
    if as_json:
        output.say_json(result)
    else:
        table = tables.of_kernels if config is None else tables.of_config
        for line in table(result, output.width(sys.stdout)):
            output.say(line)
    if before and against:
        inside = earlier.layers(before, result)
        earlier.check(against, figures, inside, TOLERANCE if tolerance is None else tolerance)


def _check_usage(
    config: Path | None,
    overrides: tuple[str, ...],
    compare: str | None,
    against: Path | None,
    tolerance: float | None,
) -> None:
    if config is None and overrides:
        raise click.UsageError("-s replaces values of a config, and no CONFIG is given")
    if config is None and compare:
        raise click.UsageError("--compare runs the model of a config, and no CONFIG is given")
    if against is None and tolerance is not None:
        raise click.UsageError("--tolerance is for --against FILE, which is not given")


def _build(
    path: Path, overrides: tuple[str, ...], device: str, trust_code: bool
) -> tuple[Any, Job]:
    from gradcli.config import build, load

    config = load(path, overrides, options.room(device), trust=options.trust(trust_code))
    output.warnings(config.warnings)
    return config.model, build(config)


def _same_conditions(
    path: Path | None, before: dict[str, Any] | None, now: dict[str, object]
) -> None:
    if path and before:
        from gradcli.bench import against

        against.same_conditions(path, before, now)
