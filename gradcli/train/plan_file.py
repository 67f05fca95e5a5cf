"""plan.json: the layers and parameters of a run, and at its end their work and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.engine import distributed
from gradcli.train.json_file import read_json

if TYPE_CHECKING:
    from gradcli.train.directory import RunDirectory
    from gradcli.train.job import Job

FORMAT = 1
NAME = "plan.json"


def outline(job: Job) -> dict[str, Any]:
    """The layers, and each parameter with its shape, which are known at the start."""
    shapes = {name: list(parameter.shape) for name, parameter in job.model.named_parameters()}
    total = sum(parameter.numel() for parameter in job.model.parameters())
    layers = list(job.model_layers)
    return {"format": FORMAT, "layers": layers, "parameters": shapes, "total": total}


def complete(
    directory: RunDirectory,
    sheet: Callable[[], Mapping[str, object]] | None,
    note: Callable[[str], None],
) -> None:
    """Add the values of a `sheet`; a failure becomes a note.

    It comes last, so that no training waits for it.
    """
    if sheet is None or distributed.size() > 1:
        return
    try:
        directory.write_json(NAME, {**read_json(directory.path / NAME), **sheet()})
    except Exception as error:  # of the user's own code too
        note(f"warning: {NAME} lacks work and memory: {error}")
