"""Runs of older versions, whose configs had other defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.data import DATASETS
from gradcli.data.facts import DataFacts, DataSpec
from gradcli.data.files import path_text
from gradcli.data.targets import ScaledTargets
from gradcli.errors import CheckpointError
from gradcli.train.checkpoint import FORMAT
from gradcli.train.directory import read_manifest
from gradcli.train.facts import facts_of

if TYPE_CHECKING:
    from gradcli.data import LoadedData

# The state of format 1: its keys as DataFacts has them, and the fields of a numeric column.
SAME = ("labels", "missing", "input", "stored", "mean", "std", "array", "unit")
FIELDS = {**{name: name for name in SAME}, "vocab": "labels"}
COLUMN = ("name", "fill", "shift", "scale")


def upgrade(config: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The resolved config of a run of an old format, with its old defaults made explicit."""
    result = dict(config)
    for path, value in changes(config, version).items():
        section, key = path.split(".")
        result[section] = {**result[section], key: value}
    return result


def changes(config: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The values, by key, with which this version does what a run of an old format did."""
    if version >= 2:
        return {}
    data, train = config.get("data"), config.get("train")
    keys: dict[str, Any] = {}
    if isinstance(data, Mapping) and _may_scale(data.get("name")):
        keys["data.target_scale"] = "none"
    if isinstance(train, Mapping) and isinstance(train.get("ema"), int | float):
        keys["train.ema"] = {"decay": train["ema"], "warmup": False, "buffers": False}
    return keys


def data_of(dataset: LoadedData, version: int) -> tuple[dict[str, str], dict[str, str]]:
    """The hashes of a dataset, and their files, as a checkpoint of this format has them.

    Format 1 has bare file names; of two files with one name it has the last.
    """
    files = {role: f"{role} ({path})" for role, path in dataset.files.items()}
    if version >= 2:
        return dict(dataset.sha256), files
    names = _bare_names(dataset)
    hashes = {names[role]: sha256 for role, sha256 in dataset.sha256.items()}
    return hashes, {names[role]: file for role, file in files.items()}


def unknown_data(dataset: LoadedData, version: int) -> list[str]:
    """A note on each file whose hash a checkpoint of this format lacks."""
    names = _bare_names(dataset) if version < 2 else {}
    last = {name: role for role, name in names.items()}
    return [
        f"{role} ({path_text(dataset.files.get(role, role))}): whether it changed is not known, as "
        f"this old checkpoint has the sha256 of another file called {path_text(name)} only"
        for role, name in names.items()
        if last[name] != role
    ]


def _bare_names(dataset: LoadedData) -> dict[str, str]:
    return {role: Path(dataset.files.get(role, role)).name for role in dataset.sha256}


def format_of(run: Path) -> int:
    """The format of a run by its manifest, or else the newest."""
    version = read_manifest(run).get("format")
    return version if type(version) is int else FORMAT


def facts_with_state(facts: DataSpec, state: Mapping[str, Any], source: str) -> DataSpec:
    """The facts with the values that a checkpoint of format 1 had fitted."""
    if not isinstance(facts, DataFacts):
        return facts  # of a user's own dataset
    try:
        later = {FIELDS[key]: value for key, value in state.items() if key in FIELDS}
        if "numeric" in state:
            later["numeric"] = [dict(zip(COLUMN, row, strict=True)) for row in state["numeric"]]
            pairs = dict(state["category"]).items()
            later["category"] = [{"name": name, "shares": shares} for name, shares in pairs]
        if "context" in state:
            later["input"] = later["target"] = [state["context"]]
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{source}: the metadata has no usable 'state'") from error
    return facts_of({**facts.as_json(), **later}, source)


def _may_scale(name: object) -> bool:
    """Whether the dataset of this name has the key `target_scale`; a user's own ones do."""
    kind = DATASETS.get(str(name))
    return kind is None or (isinstance(kind, type) and issubclass(kind, ScaledTargets))
