"""Forks: the steps from which on a run has other values, as its manifest lists them.

manifest.json decides: after a kill resolved.yaml may still have the old values. Checkpoints from
before a fork belong to the run as the later ones do.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import RunError
from gradcli.train.directory import read_manifest


@dataclass(frozen=True)
class Fork:
    """Other values from a step on.

    Attributes:
        step: the last step with the old values.
        keys: what changed, such as optim.lr; a schedule changes as a whole.
        old: the values up to the step, by key; lacks a key that had no value.
        new: the values after the step.
    """

    step: int
    keys: list[str]
    old: dict[str, Any]
    new: dict[str, Any]

    def __str__(self) -> str:
        changes = (
            f"{key} {_format(self.old, key)} -> {_format(self.new, key)}" for key in self.keys
        )
        return f"a fork at step {self.step}: {', '.join(changes)}"


def of_run(run: Path) -> list[Fork]:
    """The forks of the run in this folder, oldest first; none where it has no manifest."""
    from pydantic import TypeAdapter, ValidationError  # late: a new run has none

    forks = json.dumps(read_manifest(run).get("forks", []))
    try:
        return TypeAdapter(list[Fork]).validate_json(forks, strict=True)
    except ValidationError as error:
        raise RunError(
            f"{run / 'manifest.json'}: forks must be a list of {{step, keys, old, new}}: "
            f"{error.errors()[0]['msg']}"
        ) from None


def manifest_with(run: Path, forks: Iterable[Fork]) -> dict[str, Any]:
    """The manifest of a run with these forks."""
    manifest = read_manifest(run)
    if not manifest:
        raise RunError(
            f"{run / 'manifest.json'} cannot be read, and a fork is written there",
            notes=("without -s the run goes on as it is",),
        )
    return {**manifest, "forks": [asdict(fork) for fork in forks]}


def with_forks(config: Mapping[str, Any], forks: Iterable[Fork]) -> dict[str, Any]:
    """A resolved config with the values of forks in place of its own."""
    result = copy.deepcopy(dict(config))
    for fork in forks:
        for key in fork.keys:
            section, _, name = key.rpartition(".")
            owner = _section(result, section)
            if key in fork.new:
                owner[name] = copy.deepcopy(fork.new[key])
            else:
                owner.pop(name, None)
    return result


def _section(config: dict[str, Any], path: str) -> dict[str, Any]:
    """The map at a path; creates what is missing."""
    for step in path.split(".") if path else []:
        inner = config.get(step)
        config[step] = inner = inner if isinstance(inner, dict) else {}
        config = inner
    return config


def values_at(config: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The values of a config at those of these paths that it has."""
    values = {}
    for key in keys:
        value: Any = config
        for step in key.split("."):
            value = value.get(step, _NOTHING) if isinstance(value, Mapping) else _NOTHING
        if value is not _NOTHING:
            values[key] = value
    return values


_NOTHING = object()


def with_changes(forks: Sequence[Fork], step: int, changes: Fork) -> list[Fork]:
    """The forks of a run that goes on from `step` with these changes.

    Forks from `step` on merge with it: no step that still counts had their values.
    """
    before = [fork for fork in forks if fork.step < step]
    parts = [*forks[len(before) :], changes]
    old = _over([(part.keys, part.old) for part in reversed(parts)])
    new = _over([(part.keys, part.new) for part in parts])
    keys = sorted({key for part in parts for key in part.keys})
    keys = [key for key in keys if _format(old, key) != _format(new, key)]
    if not keys:
        return before
    return [
        *before,
        Fork(step, keys, *({k: values[k] for k in keys if k in values} for values in (old, new))),
    ]


def _over(parts: Iterable[tuple[Iterable[str], Mapping[str, Any]]]) -> dict[str, Any]:
    """The values of keys after each of these parts in turn; a part may remove a value."""
    result: dict[str, Any] = {}
    for keys, values in parts:
        for key in keys:
            result.pop(key, None)
        result.update(values)
    return result


def changes(config: Mapping[str, Any], forks: Sequence[Fork]) -> dict[str, Any]:
    """The values that forks change in a config, by key; null for a removed value."""
    keys = sorted({key for fork in forks for key in fork.keys})
    new, old = values_at(with_forks(config, forks), keys), values_at(config, keys)
    return {key: new.get(key) for key in keys if _format(new, key) != _format(old, key)}


def _format(values: Mapping[str, Any], key: str) -> str:
    return json.dumps(values.get(key))
