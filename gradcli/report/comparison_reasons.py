"""What two runs have recorded that may be why their bits differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.comparison_config import ConfigDifference
from gradcli.report.run_files import RunFiles

LONGEST, DIGITS = 80, 12  # letters of a value, and of a hash
DIRTY = "-dirty"
ONLY_SHOWN = frozenset({"click", "jinja2", "tqdm"})  # packages that no number passes through


@dataclass(frozen=True)
class Reason:
    """A difference that may be why.

    Attributes:
        kind: `config`, `data`, `device`, `instruction set`, `build`, `gradcli`, `versions` or
            `steps`.
        what: a key, a role of data, a package.
        base: what the first run has, as text; "" for nothing.
        candidate: the same of the other run.
    """

    kind: str
    what: str
    base: str
    candidate: str

    def __str__(self) -> str:
        what = f"{self.what} " if self.what else ""
        return f"{self.kind}: {what}{self.base or 'nothing'}, then {self.candidate or 'nothing'}"


def reasons(
    base: RunFiles, candidate: RunFiles, config: Iterable[ConfigDifference]
) -> list[Reason]:
    """Every recorded difference that can change bits; the number of threads cannot."""
    manifests = base.manifest, candidate.manifest
    return [
        *_of_config(config),
        *_of_data(*manifests),
        *_of_computing(*manifests),
        *_of_versions(*manifests),
    ] or [*_of_changed_files(*manifests)]


def _of_config(config: Iterable[ConfigDifference]) -> Iterator[Reason]:
    for difference in config:
        if difference.may_matter:
            sides = (
                brief(side) if side else "" for side in (difference.base, difference.candidate)
            )
            yield Reason("config", difference.key, *sides)


def same_data(base: RunFiles, candidate: RunFiles) -> bool:
    """Whether all data have the same sha256."""
    ours, theirs = (_map(run.manifest, "data") for run in (base, candidate))
    return bool(ours) and ours == theirs and None not in ours.values()


def _of_data(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[Reason]:
    ours, theirs = _map(base, "data"), _map(candidate, "data")
    files = [_map(manifest, "files") for manifest in (base, candidate)]
    for role in {**ours, **theirs}:
        if ours.get(role) != theirs.get(role):
            sides = (
                _hash(hashes.get(role), file.get(role))
                for hashes, file in zip((ours, theirs), files, strict=True)
            )
            yield Reason("data", brief(role), *sides)


def _hash(sha256: object, file: object) -> str:
    if sha256 is None:
        return ""
    return f"sha256 {brief(sha256, DIGITS)}" + (f" of {brief(file)}" if file else "")


def _of_computing(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[Reason]:
    """Differences of device, instruction set, build and source of gradcli."""
    ours, theirs = _map(base, "origin"), _map(candidate, "origin")
    devices = [
        origin.get("device", manifest.get("device"))
        for origin, manifest in ((ours, base), (theirs, candidate))
    ]
    if devices[0] != devices[1]:
        yield Reason("device", "", *map(_text, devices))
    elif ours.get("group") != theirs.get("group"):
        yield Reason(
            "instruction set", "", *(_text(origin.get("isa")) for origin in (ours, theirs))
        )
    for what in ("compiler", "flags", "source"):
        if ours.get(what) != theirs.get(what):
            size = DIGITS if what == "source" else LONGEST
            yield Reason(
                "build", what, *(_text(origin.get(what), size) for origin in (ours, theirs))
            )
    commits = [_text(origin.get("commit")) for origin in (ours, theirs)]
    if commits[0] != commits[1]:
        yield Reason("gradcli", "commit", *commits)


def _of_changed_files(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[Reason]:
    """The same commit on both sides, with uncommitted changes."""
    commits = [_text(_map(manifest, "origin").get("commit")) for manifest in (base, candidate)]
    if commits[0] == commits[1] and commits[0].endswith(DIRTY):
        yield Reason("gradcli", "changes not committed", *commits)


def _of_versions(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[Reason]:
    ours, theirs = _map(base, "versions"), _map(candidate, "versions")
    for package in (name for name in {**ours, **theirs} if name not in ONLY_SHOWN):
        if ours.get(package) != theirs.get(package):
            sides = (_text(versions.get(package)) for versions in (ours, theirs))
            yield Reason("versions", brief(package), *sides)


def _map(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = manifest.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: object, longest: int = LONGEST) -> str:
    return "" if value is None else brief(value, longest)


def brief(value: object, longest: int = LONGEST) -> str:
    """A value for a sentence; a long one is cut."""
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]}..."
