"""A run opened for reading: its config built again, with the weights of one checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli.errors import ErrorGroup

if TYPE_CHECKING:
    from gradcli.config import Config
    from gradcli.config.room import Room
    from gradcli.train.checkpoint import Meta
    from gradcli.train.job import Job

NO_DATA = "E301"


@dataclass(frozen=True)
class Trained:
    """A job with trained weights.

    Attributes:
        path: of the run.
        meta: what the checkpoint says about itself.
        notes: what the user should know: notes on the data, changed data, weights that are not
            finite.
    """

    path: Path
    job: Job
    meta: Meta
    notes: list[str]


def load_run(path: Path, overrides: Sequence[str] = (), room: Room | None = None) -> Config:
    """The config of the run in `path`; where its data is gone, the error says so.

    To go on with it, the training has to fit into a room.
    """
    from gradcli.config import load
    from gradcli.train import old_runs

    resolved = path / "resolved.yaml"
    try:
        return load(resolved, (*old_runs.overrides(path), *overrides), room)
    except ErrorGroup as group:
        for error in group.errors:
            if error.code == NO_DATA:
                error.notes += (f"if the data has moved, write its new place into {resolved}",)
        raise


def open_trained(path: Path, which: str | None, device: str, *, partial: bool = False) -> Trained:
    """The run in `path` with the checkpoint `best`, `last` or a step, on a device; without a lock.

    None means the best where the run keeps one. With `partial` tensors that do not fit are left at
    their first values, and noted.
    """
    from gradcli.config import build
    from gradcli.train.compare import check_same
    from gradcli.train.directory import best_and_last, find_checkpoint
    from gradcli.train.state import nonfinite_weights, restore

    best, last = best_and_last(path)
    name, found = find_checkpoint(path, which)
    job = build(load_run(path))
    notes = list(job.dataset.notes)
    if which is None and best is not None and best != last:
        notes.append(f"the best checkpoint, step {best}; --checkpoint last is step {last}")
    changes = check_same(found.meta, job, name, allow_data_change=True)
    notes += [f"warning: {change}" for change in changes]
    skipped = restore(found.tensors, job.model, None, name, partial=partial)
    notes += [f"skipped: {line}" for line in skipped]
    notes += [
        f"warning: weight {weight} of {name} holds {count} non-finite values"
        for weight, count in nonfinite_weights(job.model).items()
    ]
    return Trained(path, job.to(device), found.meta, notes)
