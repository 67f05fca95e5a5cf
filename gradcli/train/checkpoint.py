"""Checkpoints: one safetensors file with weights, optimizer state and what a resume needs.

The metadata holds one JSON object under the key "gradcli". Its `sha256` is taken over the whole
file with that digest written as zeros, so that one flipped bit anywhere is detected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from pathlib import Path
from types import NoneType
from typing import Any

from safetensors import SafetensorError, deserialize

from gradcli.data.facts import DataFacts
from gradcli.dataclass import dataclass
from gradcli.errors import CheckpointError
from gradcli.train.atomic import write_file
from gradcli.train.facts import facts_of
from gradcli.train.json_file import decoded
from gradcli.train.safetensors_file import Contents, RawTensor, decode, encode_header, layout

FORMAT = 2  # 1 had other defaults: old_runs.py
READABLE = range(1, FORMAT + 1)
KEY = "gradcli"
ZEROS = "0" * 64
NAME = re.compile(r"step-(\d{8,12})\.safetensors")
DIGEST = re.compile(rb'\\"sha256\\": ?\\"([0-9a-f]{64})\\"')


@dataclass(frozen=True)
class Best:
    """The best value so far of the watched metric, and the step it belongs to."""

    metric: str
    value: float
    step: int


@dataclass(frozen=True)
class CheckpointMeta:
    """What a resume needs beside the tensors.

    Attributes:
        step: the number of updates so far.
        evaluated: the last step at which the validation split was evaluated, -1 for never.
        stale: evaluations since the watched metric of early stopping improved.
        watched: the best value of that metric.
        seconds: training time so far.
        metrics: the figures of the last evaluation; None for one that is not finite.
        nonfinite: what such a figure is, `nan`, `inf` or `-inf`; empty in older checkpoints.
        config: the resolved config, so that a difference can be named.
        data: sha256 of each data file by its role; in format 1 by its bare name. None at step 0
            for a file that was still being read.
        facts: the facts of the data; None in format 1, whose runs need their data.
        origin: what computed the checkpoint, see origin.py; empty in older checkpoints.
        state: what the dataset of a run of format 1 had fitted; see old_runs.py.
        skipped: the steps left out so far because their loss or gradients were not finite.
        skipped_in_a_row: how many of them lie directly before this step.
        schedule: the state of a schedule that depends on evaluations.
        format: the format of the file.
    """

    step: int
    epoch: int
    seed: int
    optimizer: str
    config_sha256: str
    config: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str | None] = field(default_factory=dict)
    facts: DataFacts | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    schedule: Mapping[str, Any] = field(default_factory=dict)
    evaluated: int = -1
    stale: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    watched: float | None = None
    best: Best | None = None
    seconds: float = 0.0
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    nonfinite: Mapping[str, str] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory; the tensors are views into the file."""

    meta: CheckpointMeta
    tensors: dict[str, RawTensor]


def file_name(step: int) -> str:
    """`step-00000400.safetensors`."""
    return f"step-{step:08d}.safetensors"


def step_of(name: str) -> int | None:
    """The step in a checkpoint's name, or None if it is no bare checkpoint name."""
    match = NAME.fullmatch(name)
    return int(match[1]) if match else None


def write(directory: Path, meta: CheckpointMeta, tensors: Mapping[str, RawTensor]) -> Path:
    """Write aside, read back, verify, rename; returns the path of the new checkpoint."""
    path = directory / file_name(meta.step)
    header, digest = _seal(meta, tensors)
    bodies = [memoryview(tensors[name].data).cast("B") for name in layout(tensors)]

    def verify(aside: Path) -> None:
        if _digest_of_file(aside, len(header), digest) != digest:
            raise CheckpointError(f"{path.name} reads back other bytes than were written")
        _check_readable(aside, path.name)

    try:
        write_file(path, [header, *bodies], verify)
    except OSError as error:
        raise CheckpointError(
            f"cannot save {path}: {error.strerror}; older checkpoints are untouched",
            code="E703",
        ) from error
    return path


def size_of(meta: CheckpointMeta, tensors: Mapping[str, RawTensor]) -> int:
    """The size in bytes of a checkpoint with these tensors; reads only types and shapes."""
    header = encode_header(tensors, {KEY: _dump(meta)})
    return len(header) + sum(tensor.size for tensor in tensors.values())


def _seal(meta: CheckpointMeta, tensors: Mapping[str, RawTensor]) -> tuple[bytes, str]:
    """The header with its digest, and the digest."""
    blank = encode_header(tensors, {KEY: _dump(meta)})
    digest = _digest([blank, *(memoryview(tensors[name].data) for name in layout(tensors))])
    return blank.replace(ZEROS.encode(), digest.encode(), 1), digest


def _dump(meta: CheckpointMeta) -> str:
    """The metadata as strict JSON; the digest comes first, so that it is the first match."""
    return json.dumps({"sha256": ZEROS, **asdict(meta)}, allow_nan=False)


def _digest(parts: Iterable[bytes | memoryview]) -> str:
    state = hashlib.sha256()
    for part in parts:
        state.update(part)
    return state.hexdigest()


def _check_readable(aside: Path, name: str) -> None:
    """Raise unless the safetensors library reads the file, as other programs will."""
    try:
        deserialize(aside.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise CheckpointError(f"{name} is no file that safetensors reads: {error}") from error


def _digest_of_file(path: Path, header_length: int, digest: str) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        header = file.read(header_length)
        state.update(header.replace(digest.encode(), ZEROS.encode(), 1))
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def read(path: Path) -> Checkpoint:
    """Read and verify a checkpoint; any fault is a CheckpointError that names it."""
    return checkpoint_of(file_bytes(path), path)


def checkpoint_of(data: bytes, path: Path) -> Checkpoint:
    """Verify the bytes of the checkpoint at `path`."""
    view = memoryview(data)
    contents = decode(view, str(path))
    header, digest = _blank_digest(contents, path)
    if _digest([header, view[len(contents.header) :]]) != digest:
        raise CheckpointError(
            f"{path}: its bytes do not have the sha256 that it was saved with; it is damaged"
        )
    return Checkpoint(_meta(contents, path), contents.tensors)


def file_bytes(path: Path) -> bytes:
    """The whole file; not mapped, since a file cut short meanwhile would kill the process."""
    if path.is_symlink() or not path.is_file():
        raise CheckpointError(f"{path}: not a regular file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error


def _blank_digest(contents: Contents, path: Path) -> tuple[bytes, str]:
    """The header with zeros for the digest, and the digest itself."""
    match = DIGEST.search(contents.header)
    if KEY not in contents.metadata or match is None:
        raise CheckpointError(
            f"{path}: a safetensors file, but not a checkpoint of gradcli (no '{KEY}' metadata)"
        )
    start, end = match.span(1)
    blank = contents.header[:start] + ZEROS.encode() + contents.header[end:]
    return blank, match[1].decode()


def _meta(contents: Contents, path: Path) -> CheckpointMeta:
    """The metadata as a CheckpointMeta; checks the format before it reads the fields."""
    try:
        values = decoded(contents.metadata[KEY])
        version = values.pop("format")
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path}: unreadable metadata: {error}") from error
    if type(version) is not int or version not in READABLE:
        raise CheckpointError(
            f"{path}: format: the checkpoint has {version}, this gradcli reads {READABLE[0]} to "
            f"{FORMAT}",
            notes=("use the gradcli that wrote it, or a newer one",),
        )
    meta = _build_meta(values, path, version)
    if step_of(path.name) not in (None, meta.step):
        raise CheckpointError(f"{path} holds step {meta.step}: the file was renamed")
    return meta


TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("step", "epoch", "seed", "evaluated", "stale"), int),
    **dict.fromkeys(("skipped", "skipped_in_a_row"), int),
    **dict.fromkeys(("optimizer", "config_sha256"), str),
    **dict.fromkeys(("config", "data", "origin", "state", "schedule"), dict),
    **dict.fromkeys(("metrics", "nonfinite"), dict),
    "seconds": (int, float),
    "watched": (int, float, NoneType),
    "best": (dict, NoneType),
}


def _build_meta(values: dict[str, Any], path: Path, version: int) -> CheckpointMeta:
    """Check the type of every field: a right hash does not prove that gradcli wrote the file."""
    # Older checkpoints lack these.
    none: dict[str, Any] = {"schedule": {}, "origin": {}, "facts": None, "nonfinite": {}}
    values = {**none, "skipped": 0, "skipped_in_a_row": 0, **values}
    for name, kind in TYPES.items():
        if name not in values or not _usable(values[name], kind):
            raise CheckpointError(f"{path}: the metadata has no usable '{name}'")
    fields = {name: values[name] for name in TYPES if name != "best"}
    raw = values["best"]
    try:
        best = Best(str(raw["metric"]), float(raw["value"]), int(raw["step"])) if raw else None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path}: the metadata has no usable 'best'") from error
    facts = None if values["facts"] is None else facts_of(values["facts"], str(path))
    return CheckpointMeta(best=best, format=version, facts=facts, **fields)


def _usable(value: object, kind: type | tuple[type, ...]) -> bool:
    """Whether a value has this type and can be written as JSON, integers in 64 bits."""
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    if isinstance(value, int):
        return abs(value) < 1 << 63
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def names(directory: Path) -> list[str]:
    """The checkpoints in a directory, newest first; none where it does not exist."""
    try:
        files = [entry.name for entry in directory.iterdir() if step_of(entry.name) is not None]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"cannot read {directory}: {error.strerror}") from error
    return sorted(files, key=lambda name: step_of(name) or 0, reverse=True)


def newest_valid(directory: Path) -> tuple[str, Checkpoint, list[str]]:
    """The newest checkpoint that verifies, and a note on each newer one that does not."""
    notes: list[str] = []
    for name in names(directory):
        try:
            return name, read(directory / name), notes
        except CheckpointError as error:
            notes.append(f"skipped {name}: {error.message}")
    raise CheckpointError(f"{directory} holds no valid checkpoint", notes=tuple(notes))


def prune(directory: Path, keep: int, best: str | None) -> list[str]:
    """Remove all but the newest `keep` (at least 2) and the best; returns the failures."""
    failures = []
    for name in names(directory)[max(keep, 2) :]:
        if name == best:
            continue
        try:
            (directory / name).unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{name}: {error.strerror}")
    return failures
