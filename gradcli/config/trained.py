"""A run opened for reading: its config built again, with the weights of one checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradcli.config import own_code
from gradcli.config.build import build
from gradcli.config.load import Config, load
from gradcli.config.node import RUN_VALUES, ErrorReport
from gradcli.config.reader import read_file, read_yaml
from gradcli.config.room import Room
from gradcli.config.trust import Trust
from gradcli.data import DataSpec, LoadedData
from gradcli.data.dataset import misfits
from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError, ErrorGroup, GradcliError
from gradcli.train import forks, old_runs
from gradcli.train.checkpoint import CheckpointMeta, newest_valid
from gradcli.train.compare import check_same, check_same_data
from gradcli.train.directory import best_and_last, find_checkpoint
from gradcli.train.facts import misfit
from gradcli.train.job import Job
from gradcli.train.state import nonfinite_weights, restore
from gradcli.wording import quantity

NO_DATA = "E301"


@dataclass(frozen=True)
class TrainedRun:
    """A job with trained weights.

    Attributes:
        path: of the run.
        device: where the model lies, and data of its job.
        meta: what the checkpoint says about itself.
        notes: what the user should know: notes on the data, changed data, weights that are not
            finite.
    """

    path: Path
    device: str
    job: Job
    meta: CheckpointMeta
    notes: list[str]


def load_run(
    path: Path,
    overrides: Sequence[str] = (),
    room: Room | None = None,
    facts: DataSpec | None = None,
    trust: Trust | None = None,
) -> Config:
    """Load the config of the run in `path`; if its data is gone, the error says so.

    With a `room`, the training must fit in it, to be resumed. With `facts`, the data is not needed.
    `trust` decides on its own code.
    """
    file = path / "resolved.yaml"
    try:
        changes = (*_unwritten(path, overrides), *overrides)
        return load(file, changes, room, facts=facts, runs=None, trust=trust)
    except ErrorGroup as group:
        for error in group.errors:
            if error.code == NO_DATA:
                error.notes += (f"if the data has moved, write its new place into {file}",)
        raise


def _unwritten(path: Path, overrides: Sequence[str]) -> list[str]:
    """The same as `-s KEY=VALUE`, for what resolved.yaml of a run does not say.

    It may lack the latest fork, and never knew what older versions did without a key.
    """
    file, report = path / "resolved.yaml", ErrorReport(RUN_VALUES)
    try:
        config = read_yaml(read_file(file), str(file), report).plain()
    except ConfigError:
        return []  # who loads it says what is wrong with it
    if report.errors or not isinstance(config, dict):
        return []
    by_forks = forks.changes(config, forks.of_run(path))
    for override in overrides:
        by_forks.pop(override.partition("=")[0].strip(), None)
    changes = {**old_runs.changes(config, old_runs.format_of(path)), **by_forks}
    return [f"{key}={json.dumps(value)}" for key, value in changes.items()]


def load_to_resume(
    path: Path, overrides: Sequence[str], room: Room, allow_data_change: bool, trust: Trust
) -> Config:
    """The config of a run that goes on: changed data is named before whatever it does not fit."""
    try:
        return load_run(path, overrides, room, trust=trust)
    except ErrorGroup:
        if not allow_data_change:
            _check_data(path, trust)
        raise


def _check_data(path: Path, trust: Trust) -> None:
    """Raise if the data can be read and differs from that of the newest checkpoint."""
    try:
        _, checkpoint, _ = newest_valid(path / "checkpoints")
        config = load_run(path, facts=checkpoint.meta.facts, trust=trust)
        dataset = own_code.beside_data(config.data.load(), config.code)
    except GradcliError:
        return
    check_same_data(checkpoint.meta.data, checkpoint.meta.format, dataset, allow_change=False)


def open_trained(
    path: Path,
    which: str | None,
    device: str,
    *,
    partial: bool = False,
    with_data: bool = True,
    trust: Trust | None = None,
) -> TrainedRun:
    """Open the run in `path` at the checkpoint `best`, `last` or a step, on a device, unlocked.

    `which` None means the best if the run keeps one. With `partial`, tensors that do not fit keep
    their first values, with a note. Without its data, the job has no splits and serves new files.
    `trust` decides on own code.
    """
    best, last = best_and_last(path)
    name, checkpoint = find_checkpoint(path, which)
    job = (_job_with_data if with_data else _job_without_data)(path, checkpoint.meta, name, trust)
    notes = list(job.dataset.notes)
    if which is None and best is not None and best != last:
        notes.append(f"the best checkpoint, step {best}; --checkpoint last is step {last}")
    changes = check_same(checkpoint.meta, job, name, forks.of_run(path), allow_data_change=True)
    notes += [f"warning: {change}" for change in changes]
    mismatches = restore(checkpoint.tensors, job.model, None, name, partial=partial)
    notes += [f"skipped: {line}" for line in mismatches]
    notes += [
        f"warning: weight {weight} of {name} holds {quantity(count, 'non-finite value')}"
        for weight, count in nonfinite_weights(job.model).items()
    ]
    there = job.to(device)
    notes += there.dataset.notes[len(job.dataset.notes) :]
    return TrainedRun(path, device, there, checkpoint.meta, notes)


def _job_with_data(path: Path, meta: CheckpointMeta, source: str, trust: Trust | None) -> Job:
    """The job on its own data; new files are read as the checkpoint says."""
    job = build(load_run(path, trust=trust)).as_fitted(meta.facts, source)
    if meta.facts is not None or not meta.state:
        return job
    facts = old_runs.facts_with_state(job.dataset.facts, meta.state, source)
    return replace(job, dataset=replace(job.dataset, facts=facts))


def _job_of_old_run(path: Path, meta: CheckpointMeta, source: str, trust: Trust | None) -> Job:
    """The job on its own data, for new files; where its data is gone, the error says why."""
    try:
        return _job_with_data(path, meta, source, trust)
    except ErrorGroup as group:
        for error in group.errors:
            if error.code == NO_DATA:
                error.notes += (
                    f"{source} is of format {meta.format} and holds no facts of the data; "
                    "one that `gradcli resume` writes does",
                )
        raise


def _job_without_data(path: Path, meta: CheckpointMeta, source: str, trust: Trust | None) -> Job:
    """Build the job without data; a checkpoint of format 1 has no facts and needs its own data."""
    if meta.facts is None:
        return _job_of_old_run(path, meta, source, trust)
    try:
        config = load_run(path, facts=meta.facts, trust=trust)
    except ErrorGroup as group:
        for error in group.errors:
            error.notes += (f"what it says of the data are the facts in {source}",)
        raise
    for field, expected in misfits(config.data, meta.facts):
        raise misfit(source, meta.facts, field, f"{expected}, as the config says")
    sha256 = {role: digest for role, digest in meta.data.items() if digest is not None}
    job = build(config, LoadedData(config.data, meta.facts, {}, sha256))
    return job.as_fitted(meta.facts, source)
