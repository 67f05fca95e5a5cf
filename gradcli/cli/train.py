"""`gradcli train`: a new run from a config."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.cli.progress import carry_out
from gradcli.errors import ConfigError, RankError, say_once
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter, Result
    from gradcli.train.signals import Signals


def _read_ahead(ctx: click.Context, parameter: click.Parameter, config: Path) -> Path:
    """Begin with the data before anything else: it takes as long as the imports that follow."""
    from gradcli.data import ahead, idx

    ahead.begin(config)
    ctx.call_on_close(idx.forget)
    return config


def _check_verification(steps: int, stop: int | None, continues: bool) -> None:
    """A new run of so many steps can be stopped between two of them: behind `stop`, if given."""
    from gradcli.engine import distributed

    if continues:
        raise click.UsageError("--verify-resume is for new runs: leave --continue out")
    if distributed.size() > 1:
        raise say_once(
            RankError("--verify-resume trains in one process: leave it out on ranks", code="E807")
        )
    if steps < 2:
        raise ConfigError(
            f"--verify-resume stops between two steps, and this run has {quantity(steps, 'step')}",
            code="E122",
            notes=("set train.epochs, train.steps or --max-steps to more",),
        )
    if stop is not None and stop >= steps:
        raise ConfigError(
            f"--verify-step {stop} is not before the end: this run has {quantity(steps, 'step')}",
            code="E122",
            notes=(f"choose a step from 1 to {steps - 1}",),
        )


@click.command("train")
@click.argument(
    "path",
    metavar="CONFIG",
    type=options.path,
    shell_complete=completion.configs,
    callback=_read_ahead,
    is_eager=True,
)
@click.option("--name", metavar="NAME", help="Name the run; overrides the config's name.")
@options.count(
    "--max-steps", "N", "Stop after N steps; `gradcli resume` continues from there.", least=0
)
@click.option(
    "--from",
    "source",
    metavar="RUN[@W]",
    shell_complete=completion.runs,
    help="Start from the weights of a run or a file; short for -s pretrained.from=RUN[@W].",
)
@click.option(
    "--from-optimizer",
    is_flag=True,
    help="Load the optimizer's state too; short for -s pretrained.optimizer=true.",
)
@click.option(
    "--continue",
    "continues",
    is_flag=True,
    help="Continue the newest unfinished run of this config, or start one if there is none.",
)
@click.option(
    "--verify-resume",
    "verifies",
    is_flag=True,
    help="Then train again to a random step, resume from there, and compare weights and log. "
    "This takes twice the time; exit 6 if they differ.",
)
@options.count("--verify-step", "N", "Like --verify-resume, but stop at step N.")
@options.memory
@options.no_report
@options.overrides
@options.trust_code
@options.verify_data
@options.runs
@options.common
@options.isa
def command(
    path: Path,
    name: str | None,
    max_steps: int | None,
    source: str | None,
    from_optimizer: bool,
    continues: bool,
    verifies: bool,
    verify_step: int | None,
    no_report: bool,
    memory: int | None,
    overrides: tuple[str, ...],
    trust_code: bool,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Train CONFIG. Results go to DIR/<name>/<date-time-number>.

    Python code that CONFIG names (`code:`) is trusted from now on; if CONFIG lies inside a run,
    it must be trusted already.
    """
    from gradcli.cli.resume import Manner, carry_on, plan_sheet
    from gradcli.config import build, load
    from gradcli.config.changes import sha256_at_start, taken_from
    from gradcli.config.value_origins import origins_of
    from gradcli.data import idx
    from gradcli.engine import distributed
    from gradcli.train import ranks
    from gradcli.train.directory import RunDirectory, check_name
    from gradcli.train.run_name import is_run
    from gradcli.train.value_origins import ValueOrigin

    if name is not None:
        check_name(name)
    verifies = verifies or verify_step is not None
    first = [f"pretrained.from={json.dumps(source)}"] if source is not None else []
    first += ["pretrained.optimizer=true"] if from_optimizer else []
    trust = options.trust(trust_code or not is_run(path.parent), remember=distributed.rank() == 0)
    room = options.room(device, memory)
    with distributed.at_work():
        config = load(path, (*overrides, *first), room, runs, trust=trust)
    free = room.free()  # before the data is there
    output.warnings(config.warnings)
    if verifies:
        steps = config.steps if max_steps is None else min(config.steps, max_steps)
        _check_verification(steps, verify_step, continues)
    sha256 = sha256_at_start(config)
    if continues:
        from gradcli.train.unfinished import unfinished_run

        group, title = distributed.group(), name or config.name
        run = ranks.choose(group, lambda: unfinished_run(runs, title, sha256))
        if run is not None:
            manner = Manner(as_json, threads, device, no_report, max_steps=max_steps)
            with ranks.directory(group, lambda: RunDirectory(run)) as directory:
                changes = taken_from(config, run)
                carry_on(directory, changes, (), trust, manner, origins_of(config))
            return
    with distributed.at_work():
        job = build(config)
    idx.forget()  # what was read ahead by a wrong guess

    if name is not None:
        origin = ValueOrigin(name, "override", f"--name {name}")
        origins = {**job.origins, "name": origin}
        job = replace(job, name=name, resolved={**job.resolved, "name": name}, origins=origins)

    from gradcli.train.launch import start
    from gradcli.train.run_context import RunContext

    def begin(job: Job, thread_count: int, reporter: Reporter, signals: Signals) -> Result:
        sets = 2 if verifies else 1
        context = RunContext(
            sys.argv, device, thread_count, sha256, sets, partial(plan_sheet, config, device, free)
        )
        result = start(job, runs, context, reporter, signals, max_steps)
        if not verifies:
            return result
        from gradcli.train.verification import Stop, verify_resume

        stop = Stop(verify_step, max_steps)
        return verify_resume(job, result, context, reporter, signals, stop)

    carry_out(begin, job, as_json, threads, device, no_report, memory)
