"""First values of weights from a file: a checkpoint of gradcli, or any safetensors file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.errors import CheckpointError
from gradcli.registry import did_you_mean
from gradcli.train.safetensors_file import Stored, read
from gradcli.train.state import MODEL, as_evaluated, as_tensor, dtype_name, readable

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn


def take_over(model: nn.Module, file: Path, names: Collection[str]) -> str:
    """Copy the weights called `names` from the file, by the same names; gives a line to show.

    All are compared before any is copied. What else the file holds is left alone.
    """
    stored = _read(file)
    wanted = {name: one for name, one in model.state_dict().items() if name in names}
    problems = [_problem(name, one, stored) for name, one in wanted.items()]
    told = [problem for problem in problems if problem]
    if told:
        raise CheckpointError(
            f"pretrained: {len(told)} of {len(wanted)} weights do not come from {file}: {told[0]}",
            code="E704",
            notes=(*told[1:], "pretrained.layers names the layers whose weights are there"),
        )
    with engine.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(as_tensor(stored[name]))
    return f"{len(wanted)} weights begin as in {file}"


def _read(file: Path) -> dict[str, Stored]:
    """The tensors of the file; of a checkpoint those of the model, without their prefix."""
    stored = read(file).tensors
    if any(name.startswith(MODEL) for name in stored):
        return {name.removeprefix(MODEL): one for name, one in as_evaluated(stored).items()}
    return stored


def _problem(name: str, tensor: Tensor, stored: Mapping[str, Stored]) -> str:
    """Why a weight cannot be taken from the file; empty where it can."""
    shown = f"{dtype_name(tensor)}{list(tensor.shape)}"
    if name not in stored:
        return f"{name} {shown} is not in it; {did_you_mean(name, stored, 'nothing is called so')}"
    found = stored[name]
    if not readable(found, tensor) or found.shape != tuple(tensor.shape):
        return f"{name} is {found.dtype}{list(found.shape)} in it, {shown} in the model"
    return ""
