"""The directory of a run: created once, written by one process."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradcli.errors import CheckpointError, ConfigError, RunError
from gradcli.train import checkpoint
from gradcli.train.atomic import remove_stale, sync_directory, write_file, write_text
from gradcli.train.checkpoint import Checkpoint, CheckpointMeta
from gradcli.train.json_file import FORMAT, read_json
from gradcli.train.lock import RunLock
from gradcli.train.log import Log, strict
from gradcli.train.log_recovery import recover as recover_log
from gradcli.train.run_start import MOST, NAME, next_start
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.small_file import read_small
from gradcli.train.yaml_text import to_yaml
from gradcli.wording import join_words

STEP = re.compile(r"[0-9]{1,12}")
BEFORE_FORK = re.compile(rf"resolved-({STEP.pattern})\.yaml")
POINTERS = ("last", "best")
LOG = "log.jsonl"
EVALUATION = ("evaluation.json", "evaluation.safetensors")


def check_name(name: str) -> str:
    """A run's name, or a ConfigError: it becomes a directory and must not lead anywhere else."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!a} cannot be a run's name: letters, digits, '.', '_' and '-', "
            "at most 100, beginning with a letter or digit",
            code="E123",
        )
    return name


class RunDirectory:
    """One run's files; the lock is held from construction until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._lock = RunLock(path / "lock")
        self._log: Log | None = None
        self._noted = False  # whether a note said that old checkpoints cannot be removed

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log and release the lock."""
        self._close_log()
        self._lock.release()

    def _flush_log(self) -> None:
        if self._log is not None:
            self._log.flush()

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    # Written once.

    def write_config(
        self,
        sources: Sequence[tuple[Path, str]],
        resolved: Mapping[str, object],
        beside: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """config.yaml and what it extends, as written, and resolved.yaml with every default.

        Files `beside` it, such as own code, are written under their bare names.
        """
        with _writing(self.path):
            for number, (_, text) in enumerate(sources):
                name = f"config.base{number}.yaml" if number else "config.yaml"
                write_text(self.path / name, text)
            for name, text in beside.items():
                write_text(self.path / name, text)
            write_text(self.path / "resolved.yaml", to_yaml(resolved))

    def write_json(self, name: str, value: Mapping[str, object], *, flush: bool = True) -> None:
        """manifest.json, plan.json or status.json, whole or not at all."""
        text = json.dumps(value, indent=2, allow_nan=False)
        with _writing(self.path):
            write_text(self.path / name, text + "\n", flush=flush)

    def write_evaluation(
        self, record: Mapping[str, object], tensors: Sequence[bytes | memoryview]
    ) -> None:
        """The files of the last evaluation: first the tensors, then evaluation.json."""
        with _writing(self.path):
            if tensors:
                write_file(self.path / EVALUATION[1], tensors)
            text = json.dumps(record, allow_nan=False, separators=(",", ":"))
            write_text(self.path / EVALUATION[0], text + "\n")

    def discard_evaluation(self) -> None:
        """Remove the evaluation files of a run that goes on: they belong to older weights.

        A file that cannot be removed still names its step.
        """
        for name in EVALUATION:
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)

    def write_fork(self, step: int, manifest: Mapping[str, object]) -> None:
        """Save the config of the steps up to here under another name, then the manifest.

        The manifest decides; the new resolved.yaml may follow at any time.
        """
        with _writing(self.path):
            later = [(at, path) for at, path in self._before_forks() if at >= step]
            _, source = min(later, default=(step, self.path / "resolved.yaml"))
            before = self.path / f"resolved-{step}.yaml"
            if source != before:
                write_text(before, source.read_text(encoding="utf-8"))
        self.write_json("manifest.json", manifest)

    def _before_forks(self) -> Iterator[tuple[int, Path]]:
        """The step of each fork, and the config that held up to it."""
        for path in self.path.iterdir():
            name = BEFORE_FORK.fullmatch(path.name)
            if name:
                yield int(name[1]), path

    # Written all along.

    def log(self, record: dict[str, object]) -> None:
        """One more line of log.jsonl."""
        if self._log is None:
            self._log = Log(self.path / LOG)
        self._log.write(record)

    def status(self, record: dict[str, Any]) -> None:
        """Write status.json: what the run is doing, or how it ended.

        Only the final status is flushed to disk: its checkpoints show how far a run came.
        """
        metrics = record.get("metrics")
        if metrics is not None:
            record = {**record, "metrics": strict(dict(metrics))}
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        final = record["status"] != "running"
        if final:
            self._flush_log()
        report = {"format": FORMAT, **strict(record), "updated": now}
        self.write_json("status.json", report, flush=final)

    def save(
        self,
        meta: CheckpointMeta,
        tensors: Mapping[str, RawTensor],
        keep: int,
        note: Callable[[str], None] | None = None,
    ) -> Path:
        """Save a checkpoint, then move the pointers, then remove old checkpoints.

        If an old one cannot be removed, a note says so once, and each save tries it again.
        """
        self._flush_log()  # a checkpoint that counts has its lines
        path = checkpoint.write(self.checkpoints, meta, tensors)
        best = checkpoint.file_name(meta.best.step) if meta.best else None
        with _writing(self.path):
            self._point("last", path.name)
            if best is not None and (self.checkpoints / best).exists():
                self._point("best", best)
            troubles = checkpoint.prune(self.checkpoints, keep, best)
        if troubles and note is not None and not self._noted:
            self._noted = True
            note(
                f"warning: an old checkpoint cannot be removed: {troubles[0]}; the training goes "
                "on, and each save tries it again"
            )
        return path

    def _point(self, pointer: str, name: str) -> None:
        if read_pointer(self.path, pointer) != name:
            write_text(self.path / pointer, name + "\n")

    def recover(self) -> tuple[str, Checkpoint, list[str]]:
        """After a crash: remove stale files, read the newest valid checkpoint, cut the log."""
        if not self.checkpoints.is_dir():
            raise CheckpointError(f"{self.path} has no checkpoint; start the training anew")
        with _writing(self.path):
            stale = self._remove_stale()
            name, newest, notes = checkpoint.newest_valid(self.checkpoints)
            notes += stale
            notes += recover_log(self.path / LOG, newest.meta.step, newest.meta.evaluated)
        return name, newest, notes

    def recover_start(self) -> list[str]:
        """After a kill before the first checkpoint: remove stale files, empty the log."""
        with _writing(self.path):
            self.checkpoints.mkdir(exist_ok=True)  # an empty one may be lost in a copy
            return self._remove_stale() + recover_log(self.path / LOG, 0, -1)

    def _remove_stale(self) -> list[str]:
        self._close_log()
        return remove_stale(self.checkpoints) + remove_stale(self.path)

    def discard_if_empty(self) -> None:
        """Remove a run that failed before its first checkpoint.

        Files that cannot be removed stay: the reason of the failure matters more.
        """
        with contextlib.suppress(OSError):
            if any(self.checkpoints.iterdir()):
                return
            self.close()
            self.checkpoints.rmdir()
            for entry in self.path.iterdir():
                entry.unlink()
            self.path.rmdir()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError into an error that names the directory and the reason."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write in {path}: {error.strerror}; checkpoints are untouched"
        ) from error


def create(runs: Path, name: str) -> RunDirectory:
    """A new directory runs/<name>/<date-time-number>, never one that exists."""
    parent = runs / check_name(name)
    new = [folder for folder in (parent, runs) if not folder.exists()]
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if parent.resolve().parent != runs.resolve():
            raise RunError(f"{parent} is a link that leads out of {runs}")
        path = _exclusive(runs, parent)
        new = [path / "checkpoints", path, *new]
        new[0].mkdir()
        sync_directory(parent)
        return RunDirectory(path)
    except (OSError, RunError) as error:
        _remove_empty(new)
        if isinstance(error, RunError):
            raise
        raise RunError(f"cannot make a run in {parent}: {error.strerror}") from error


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove new folders, innermost first; one that is not empty stays."""
    for folder in folders:
        with contextlib.suppress(OSError):
            (folder / "lock").unlink(missing_ok=True)
            folder.rmdir()


def _exclusive(runs: Path, parent: Path) -> Path:
    """Make a folder of this start's own: of two starts in one second, mkdir fails for one."""
    start = next_start(runs, parent.name)
    for _ in range(MOST):
        path = parent / start.folder
        try:
            path.mkdir()
        except FileExistsError:
            start = start.next()
            continue
        return path
    raise RunError(f"{parent} already has {MOST} runs of this second")


def is_unsaved(path: Path) -> bool:
    """Whether a run never had a checkpoint: it has just begun, or was killed early."""
    return not checkpoint.names(path / "checkpoints") and not os.path.lexists(path / "last")


def _from_start(path: Path) -> tuple[str, ...]:
    return (f"`gradcli resume {path}` goes on from step 0",) if is_unsaved(path) else ()


def read_pointer(path: Path, pointer: str) -> str | None:
    """The bare checkpoint name in `last` or `best`; anything else in there counts as nothing."""
    file = path / pointer
    try:
        if file.is_symlink():
            return None
        name = read_small(file).decode("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return name if checkpoint.step_of(name) is not None else None


def best_and_last(path: Path) -> tuple[int | None, int | None]:
    """The steps that the pointers of a run name; None where one names no checkpoint."""
    best, last = (checkpoint.step_of(read_pointer(path, each) or "") for each in ("best", "last"))
    return best, last


def checkpoint_name(path: Path, which: str | None) -> str | None:
    """The file of the checkpoint called `best`, `last`, a step or a file name.

    For None it is the best if the run keeps one, else the last. The result is None if the pointer
    to the last one is lost; then the caller looks for the newest valid checkpoint.
    """
    if which is None:
        which = "last" if read_pointer(path, "best") is None else "best"
    if which in POINTERS:
        name = read_pointer(path, which)
    else:
        name = checkpoint.file_name(int(which)) if STEP.fullmatch(which) else which
    if name is None and which == "last":
        if is_unsaved(path):
            raise CheckpointError(f"{path} has no checkpoint yet", notes=_from_start(path))
        return None
    directory = path / "checkpoints"
    if name is None or checkpoint.step_of(name) is None or not (directory / name).exists():
        steps = ", ".join(str(checkpoint.step_of(file)) for file in checkpoint.names(directory))
        notes = ("choose best, last or one of these steps",) if which not in POINTERS else ()
        if which == "best":
            notes = ("a best one is kept where train.best names a figure, or train.early_stop",)
        raise CheckpointError(
            f"{path} has no checkpoint {which!a}; steps: {steps or 'none'}",
            notes=notes + _from_start(path),
        )
    return name


def checkpoint_file(path: Path, which: str | None) -> Path:
    """The path of the checkpoint that `checkpoint_name` names."""
    directory = path / "checkpoints"
    return directory / (checkpoint_name(path, which) or checkpoint.newest_valid(directory)[0])


def find_checkpoint(path: Path, which: str | None) -> tuple[str, Checkpoint]:
    """The checkpoint that `checkpoint_name` names, verified."""
    name = checkpoint_name(path, which)
    directory = path / "checkpoints"
    if name is None:
        return checkpoint.newest_valid(directory)[:2]
    try:
        return name, checkpoint.read(directory / name)
    except CheckpointError as error:
        error.notes += _alternatives(directory, name)
        raise


def check_newest(path: Path, which: str) -> None:
    """Refuse to go on from a checkpoint that is not the newest valid one of a run."""
    name = checkpoint_name(path, which)
    newest, at, _ = checkpoint.newest_valid(path / "checkpoints")
    if which != "last" and name != newest:
        raise RunError(
            f"{path}@{which} is not where the run stands: it goes on from its newest valid "
            f"checkpoint, step {at.meta.step}",
            notes=(
                "leave the '@' away to go on from there",
                f"or begin a new run: gradcli train {path / 'resolved.yaml'} "
                f"--from {path}@{which} --from-optimizer",
            ),
        )


def _alternatives(directory: Path, name: str) -> tuple[str, ...]:
    """A note on the other checkpoints, for one that cannot be read."""
    steps = [str(checkpoint.step_of(file)) for file in checkpoint.names(directory) if file != name]
    if not steps:
        return ()
    return (f"other checkpoints: --checkpoint {join_words(steps, 5, ' or ')}",)


def read_status(path: Path) -> dict[str, Any]:
    """status.json as it stands, empty if it cannot be read."""
    return read_json(path / "status.json")


def read_manifest(path: Path) -> dict[str, Any]:
    """manifest.json as it stands, empty if it cannot be read."""
    return read_json(path / "manifest.json")
