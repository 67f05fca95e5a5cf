"""Which keys a run may change as it goes on, and what is said of the others."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from gradcli.config.node import RUN_VALUES, ErrorReport
from gradcli.config.reader import read_file, read_yaml
from gradcli.config.sections import top
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean
from gradcli.train.changeable import Changeable, marks
from gradcli.train.compare import FREE, config_sha256, data_path_keys
from gradcli.train.forks import values_at
from gradcli.train.job import TrainSettings

if TYPE_CHECKING:
    from gradcli.config.load import Config


def changeable() -> dict[str, Changeable]:
    """Keys, and sections that may change as a whole, by their paths."""
    return {**dict(marks(top)), **dict(marks(TrainSettings, "train."))}


def changes(overrides: Sequence[str], run: Path) -> set[str]:
    """The keys that these `-s KEY=VALUE` fork the run in this folder at; others are refused."""
    forks = set()
    for override in overrides:
        key = override.partition("=")[0].strip()
        path, mark = _mark_of(key)
        if mark is None:
            raise _refusal(override, key, run)
        if mark.forks:
            forks.add(path)
    return forks


def sha256_at_start(config: Config) -> str:
    """Identifies a config and the runs that started from it.

    Pretrained weights count by their name, own code by its text; the place of the data does not
    count.
    """
    weights = {key: config.explicit[key] for key in ("pretrained",) if key in config.explicit}
    code = {"code": dict(config.code)} if config.code else {}
    return config_sha256({**config.resolved, **weights, **code}, data_path_keys(config.data))


def taken_from(config: Config, run: Path) -> list[str]:
    """The values, as KEY=VALUE, that a resumed run takes from its changed config.

    These are its length, how often it logs and saves, and the place of the data: none changes a
    step. If the config leaves out log_every, the run keeps its own.
    """
    file = run / "resolved.yaml"
    before = read_yaml(read_file(file), str(file), ErrorReport(RUN_VALUES)).plain()
    keys = sorted(FREE | data_path_keys(config.data))
    if "log_every" not in config.explicit["train"]:
        keys.remove("train.log_every")
    old, new = values_at(before, keys), values_at(config.resolved, keys)
    changes = [key for key in keys if old.get(key) != new.get(key)]
    return [f"{key}={json.dumps(new.get(key))}" for key in changes]


def _mark_of(key: str) -> tuple[str, Changeable | None]:
    """The path under which a change of this key is recorded, and its mark."""
    for path, mark in changeable().items():
        section, _, inner = key.partition(f"{path}.")
        name = inner.partition(".")[0]
        if not mark.but and (key == path or (not section and inner)):
            return path, mark
        if mark.but and not section and name and name not in mark.but:
            return f"{path}.{name}", mark
    return key, None


def _refusal(override: str, key: str, run: Path) -> ConfigError:
    options = [
        f"{path}.KEY (all but {', '.join(mark.but)})" if mark.but else path
        for path, mark in sorted(changeable().items())
    ]
    begin = ["gradcli", "train", str(run / "resolved.yaml"), "--from", str(run), "-s", override]
    return ConfigError(
        f"-s {override}: that is a new run; a resumed one can only change {', '.join(options)}",
        code="E125",
        notes=(_slip(key) or f"a new run with these weights: {shlex.join(begin)}",),
    )


def _slip(key: str) -> str:
    """A suggestion for a key that exists neither in `train` nor at the top; else empty."""
    names = {*get_type_hints(top), *(f"train.{name}" for name in get_type_hints(TrainSettings))}
    if key in names or (key.partition(".")[0] in names and not key.startswith("train.")):
        return ""
    return "" if key.startswith(SECTIONS) else did_you_mean(key, changeable())


# Sections of `train`, which have keys of their own.
SECTIONS = ("train.ema.", "train.early_stop.", "train.sample.")
