"""Where the configs of two runs differ, value by value, with what each value comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from gradcli.config.node import RUN_VALUES, ErrorReport
from gradcli.config.reader import read_yaml
from gradcli.data.table import DATASETS
from gradcli.dataclass import dataclass
from gradcli.errors import GradcliError
from gradcli.report.run_files import RunFiles
from gradcli.train import forks, old_runs
from gradcli.train.compare import FREE, OUTSIDE

# What changes no bit of the weights: what is measured, written and said beside them.
HARMLESS = (FREE - {"train.epochs", "train.steps", "train.reduce"}) | {
    *OUTSIDE,
    "metrics",
    "train.best",
    "train.capture",
    "train.sample",
}


@dataclass(frozen=True)
class ComparedValue:
    """A value of a config; `origin` says in words where it comes from, "" where nobody wrote it."""

    value: Any
    origin: str = ""

    def __str__(self) -> str:
        text = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"{text} ({self.origin})" if self.origin else text


@dataclass(frozen=True)
class ConfigDifference:
    """A key whose values differ; None where a config lacks it.

    Attributes:
        may_matter: it can change the bits of the weights.
    """

    key: str
    base: ComparedValue | None
    candidate: ComparedValue | None
    may_matter: bool


class RunConfig:
    """The config that a run has by now, and the origins of its values."""

    def __init__(self, run: RunFiles) -> None:
        self.problem = ""  # why there are no values
        self._origins = _by_key(run.origins.get("values"))
        self._forks: dict[str, int] = {}
        try:
            self.values = self._read(run)
        except GradcliError as error:
            self.problem = f"{run.path / 'resolved.yaml'}: {error.message}"
            self.values = {}

    def _read(self, run: RunFiles) -> dict[str, Any]:
        file, report = str(run.path / "resolved.yaml"), ErrorReport(RUN_VALUES)
        values = read_yaml(run.resolved_text, file, report).plain()
        if report.errors:
            raise report.errors[0]
        if not isinstance(values, dict):
            raise GradcliError("it holds no config")
        changes = forks.of_run(run.path)
        self._forks = {key: fork.step for fork in changes for key in fork.keys}
        return forks.with_forks(old_runs.upgrade(values, old_runs.format_of(run.path)), changes)

    def at(self, key: str, value: Any) -> ComparedValue:
        """A value with its origin."""
        for fork, step in self._forks.items():
            if key == fork or key.startswith(f"{fork}."):
                return ComparedValue(value, f"a fork at step {step}")
        origin = self._origins.get(key)
        if not isinstance(origin, dict):
            return ComparedValue(value)
        words = origin.get("place") or origin.get("origin")
        return ComparedValue(value, words if isinstance(words, str) else "")

    @property
    def path_keys(self) -> frozenset[str]:
        """The keys that say where data lies: what the files hold is compared instead."""
        data = self.values.get("data")
        name = data.get("name") if isinstance(data, Mapping) else None
        kind = DATASETS.get(name) if isinstance(name, str) else None
        keys = getattr(kind, "PATH_KEYS", ())
        return frozenset(f"data.{key}" for key in keys) if isinstance(keys, tuple) else frozenset()


def _by_key(values: object) -> Mapping[str, Any]:
    return values if isinstance(values, dict) else {}


def differences(base: RunConfig, candidate: RunConfig, same_data: bool) -> list[ConfigDifference]:
    """The keys whose values differ, in the order of the base's config.

    With `same_data`, the place of the data does not matter.
    """
    harmless = HARMLESS | (base.path_keys & candidate.path_keys if same_data else frozenset())
    result = []
    for ours, theirs in _pairs(ConfigLeaf("", base.values), ConfigLeaf("", candidate.values)):
        key = (ours or theirs or _NOTHING).key
        result.append(
            ConfigDifference(
                key,
                base.at(ours.key, ours.value) if ours else None,
                candidate.at(theirs.key, theirs.value) if theirs else None,
                not any(key == prefix or key.startswith(f"{prefix}.") for prefix in harmless),
            )
        )
    return result


@dataclass(frozen=True)
class ConfigLeaf:
    """A value at a path of a config."""

    key: str
    value: Any

    def inner(self, key: object) -> ConfigLeaf:
        """What a map or a list has inside."""
        return ConfigLeaf(f"{self.key}.{key}" if self.key else str(key), self.value[key])


_NOTHING = ConfigLeaf("", None)
Pair = tuple[ConfigLeaf | None, ConfigLeaf | None]


def _pairs(ours: ConfigLeaf, theirs: ConfigLeaf) -> Iterator[Pair]:
    """The leaves that differ; one that only one of them has stands alone."""
    if isinstance(ours.value, dict) and isinstance(theirs.value, dict):
        for key in {**ours.value, **theirs.value}:
            if key not in theirs.value:
                yield ours.inner(key), None
            elif key not in ours.value:
                yield None, theirs.inner(key)
            else:
                yield from _pairs(ours.inner(key), theirs.inner(key))
    elif isinstance(ours.value, list) and isinstance(theirs.value, list):
        yield from _pairs_of_lists(ours, theirs)
    elif not _equal(ours.value, theirs.value):
        yield ours, theirs


def _pairs_of_lists(ours: ConfigLeaf, theirs: ConfigLeaf) -> Iterator[Pair]:
    """Pair the items of two lists; an inserted layer is one difference."""
    before, behind = ([json.dumps(item) for item in leaf.value] for leaf in (ours, theirs))
    matcher = SequenceMatcher(None, before, behind, autojunk=False)
    for what, i, i_end, j, j_end in matcher.get_opcodes():
        if what == "equal":
            continue
        both = min(i_end - i, j_end - j)
        for step in range(both):
            yield from _pairs(ours.inner(i + step), theirs.inner(j + step))
        yield from ((ours.inner(at), None) for at in range(i + both, i_end))
        yield from ((None, theirs.inner(at)) for at in range(j + both, j_end))


def _equal(ours: Any, theirs: Any) -> bool:
    """1 and 1.0 are equal; 1 and true are not."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    return bool(ours == theirs)
