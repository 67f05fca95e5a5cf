"""Check that a checkpoint belongs to a config, and which fields may differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from gradcli.data.dataset import path_keys
from gradcli.data.files import path_text
from gradcli.errors import CheckpointError
from gradcli.train.changeable import marks
from gradcli.train.checkpoint import FORMAT
from gradcli.train.forks import Fork, with_forks
from gradcli.train.job import TrainSettings
from gradcli.train.old_runs import data_of, unknown_data, upgrade

if TYPE_CHECKING:
    from gradcli.data import LoadedData, Source
    from gradcli.train.checkpoint import CheckpointMeta
    from gradcli.train.job import Job

# How long to train and how often to evaluate or save: these change no step computed so far.
FREE = frozenset(path for path, mark in marks(TrainSettings, "train.") if not mark.forks)
OUTSIDE = ("name", "expect", "gradcli")


def path_keys_of(job: Job) -> frozenset[str]:
    """The keys of a job's config that say where data lies; its contents are compared instead."""
    return frozenset({"pretrained.from", *data_path_keys(job.dataset.source)})


def data_path_keys(source: Source) -> frozenset[str]:
    """The keys that say where a source lies, such as data.path."""
    return frozenset(f"data.{key}" for key in path_keys(source))


def flat(
    values: Mapping[str, object], excluded: Set[str] = frozenset(), prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """`train.batch` and its value, for every value that fixes what the training computes."""
    for key, value in values.items():
        path = f"{prefix}{key}"
        if path in FREE or path in OUTSIDE or path in excluded:
            continue
        if isinstance(value, Mapping):
            yield from flat(value, excluded, f"{path}.")
        else:
            yield path, value


def config_sha256(resolved: Mapping[str, object], excluded: Set[str] = frozenset()) -> str:
    """One hash for all configs that compute the same steps."""
    text = json.dumps(dict(flat(resolved, excluded)), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def config_of(meta: CheckpointMeta, forks: Iterable[Fork] = ()) -> dict[str, Any]:
    """The resolved config of a checkpoint, upgraded to this version, with the run's forks."""
    return with_forks(upgrade(meta.config, meta.format), forks)


def check_same(
    meta: CheckpointMeta,
    job: Job,
    source: str,
    forks: Sequence[Fork] = (),
    *,
    allow_data_change: bool,
) -> list[str]:
    """Raise unless the checkpoint belongs to the job of a run with these forks.

    Returns notes on allowed differences.
    """
    differences = [
        f"{field}: the checkpoint has {theirs}, the config {ours}"
        for field, theirs, ours in (
            ("optimizer", meta.optimizer, job.optimizer_name),
            ("seed", meta.seed, job.settings.seed),
        )
        if theirs != ours
    ]
    # A key that the run's own config lacks had its default there too.
    keys = path_keys_of(job)
    same = [
        config_sha256(config, keys) for config in (job.resolved, with_forks(job.explicit, forks))
    ]
    theirs, as_stored = config_of(meta, forks), meta.format == FORMAT and not forks
    sha256 = meta.config_sha256 if as_stored else config_sha256(theirs, keys)
    if not differences and sha256 not in same:
        differences = _differences(dict(flat(theirs, keys)), dict(flat(job.resolved, keys)))
    if differences:
        raise CheckpointError(
            f"{source} is of another training: {differences[0]}",
            code="E705",
            notes=(
                *differences[1:],
                "give resolved.yaml the checkpoint's values; `gradcli resume -s` may change some, "
                "and `gradcli train --from` begins another training with these weights",
            ),
        )
    return check_same_data(meta.data, meta.format, job.dataset, allow_data_change)


def _differences(theirs: dict[str, object], ours: dict[str, object]) -> list[str]:
    return [
        f"{key}: the checkpoint has {_format(theirs, key)}, the config {_format(ours, key)}"
        for key in sorted(theirs.keys() | ours.keys())
        if _format(theirs, key) != _format(ours, key)
    ] or ["its stored config has another hash than it claims"]


def _format(values: dict[str, object], key: str) -> str:
    return json.dumps(values[key]) if key in values else "nothing"


def _unread(role: str, data: Mapping[str, str | None]) -> bool:
    """Whether the hash of a file was still unknown when the checkpoint was written."""
    return role in data and data[role] is None


def check_same_data(
    data: Mapping[str, str | None],
    version: int,
    dataset: LoadedData,
    allow_change: bool,
    since: str = "the checkpoint",
) -> list[str]:
    """Raise unless the hashes of a checkpoint are the data's; returns a note on each change."""
    theirs = dict(data)
    ours, files = data_of(dataset, version)
    changes = [
        f"{path_text(files.get(role, role))}: sha256 was {theirs.get(role)}, is {ours.get(role)}"
        for role in {**ours, **theirs}
        if theirs.get(role) != ours.get(role) and not (role in ours and _unread(role, theirs))
    ]
    if changes and not allow_change:
        raise CheckpointError(
            f"the data changed since {since}: {changes[0]}",
            code="E706",
            notes=(*changes[1:], "resume with --allow-data-change to go on regardless"),
        )
    return changes + unknown_data(dataset, version)
