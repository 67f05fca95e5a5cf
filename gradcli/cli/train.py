"""`gradcli train`: a new run from a config."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.cli.progress import carry_out

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


@click.command("train")
@click.argument(
    "path",
    metavar="CONFIG",
    type=options.path,
    shell_complete=completion.configs,
    callback=_read_ahead,
    is_eager=True,
)
@click.option("--name", metavar="NAME", help="The run's name, in place of the config's.")
@options.count(
    "--max-steps", "N", "Stop after N steps; `gradcli resume` continues from there.", least=0
)
@click.option(
    "--from",
    "source",
    metavar="RUN[@W]",
    shell_complete=completion.runs,
    help="Begin with the weights of a run or of a file: -s pretrained.from=RUN[@W].",
)
@click.option(
    "--from-optimizer",
    is_flag=True,
    help="And with its optimizer's state: -s pretrained.optimizer=true.",
)
@click.option(
    "--continue",
    "continues",
    is_flag=True,
    help="Go on with the newest unfinished run of this config; begin one where there is none.",
)
@options.overrides
@options.trust_code
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
    overrides: tuple[str, ...],
    trust_code: bool,
    runs: Path,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Train CONFIG. Results go to DIR/<name>/<date-time-number>.

    Own code (`code:`) of CONFIG is trusted from now on; that of a config inside a run must be
    trusted already.
    """
    from gradcli.cli.resume import Manner, carry_on
    from gradcli.config import build, load
    from gradcli.config.changes import sha256_at_start, taken_from
    from gradcli.data import idx
    from gradcli.engine import distributed
    from gradcli.train import ranks
    from gradcli.train.directory import RunDirectory, check_name
    from gradcli.train.run_name import is_run

    if name is not None:
        check_name(name)
    first = [f"pretrained.from={json.dumps(source)}"] if source is not None else []
    first += ["pretrained.optimizer=true"] if from_optimizer else []
    trust = options.trust(trust_code or not is_run(path.parent), remember=distributed.rank() == 0)
    config = load(path, (*overrides, *first), options.room(device), runs, trust=trust)
    output.warnings(config.warnings)
    sha256 = sha256_at_start(config)
    if continues:
        from gradcli.train.unfinished import unfinished_run

        group, title = distributed.group(), name or config.name
        run = ranks.choose(group, lambda: unfinished_run(runs, title, sha256))
        if run is not None:
            manner = Manner(as_json, threads, device, max_steps=max_steps)
            with ranks.directory(group, lambda: RunDirectory(run)) as directory:
                carry_on(directory, taken_from(config, run), (), trust, manner)
            return
    job = build(config)
    idx.forget()  # what was read ahead by a wrong guess

    if name is not None:
        job = replace(job, name=name, resolved={**job.resolved, "name": name})

    from gradcli.train.launch import Circumstances, start

    def begin(job: Job, thread_count: int, reporter: Reporter, signals: Signals) -> Result:
        circumstances = Circumstances(sys.argv, device, thread_count, sha256)
        return start(job, runs, circumstances, reporter, signals, max_steps)

    carry_out(begin, job, as_json, threads, device)
