"""`gradcli export`: the weights of a run as a file that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.config.trained import TrainedRun

SUFFIX = ".safetensors"


@click.command("export")
@click.argument("run", shell_complete=completion.runs)
@click.argument("file", type=options.path, metavar="FILE.safetensors")
@click.option("--merge", is_flag=True, help="Merge the LoRA matrices A and B into the weights.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
@options.with_run
def command(
    open_run: Callable[[bool], TrainedRun], file: Path, merge: bool, overwrite: bool, as_json: bool
) -> None:
    """Export the weights of RUN to FILE.

    RUN is a path, a run's name or `last`; RUN@best, RUN@last or RUN@STEP names a checkpoint. A run
    with averaged weights exports the averages.
    """
    if file.suffix != SUFFIX:
        raise ConfigError(f"{file}: only {SUFFIX} is written; call it {file.stem}{SUFFIX}")
    if not file.parent.is_dir():
        raise ConfigError(f"{file}: there is no folder {file.parent}; make it first")
    if file.exists() and not overwrite:
        raise ConfigError(f"{file} is there already; give another name, or --overwrite")
    run = open_run(False)
    from gradcli.cli.weights import weights
    from gradcli.engine.nn import merge_lora
    from gradcli.train.tensor_files import save_tensors

    model = run.job.model
    if merge and not merge_lora(model):
        raise ConfigError(f"{run.path} was trained without lora; there is nothing to merge")
    tensors = dict(model.state_dict())
    save_tensors(file, tensors, {"run": run.path.name, "step": str(run.meta.step)})
    if as_json:
        output.say_json({"file": str(file), "step": run.meta.step, "tensors": [*tensors]})
        return
    output.say(f"{quantity(len(tensors), 'tensor')} of {run.path}, {weights(run)}, in {file}")
