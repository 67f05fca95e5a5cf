"""What two runs have recorded that may be why their bits differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.comparison_config import Difference
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
        other: the same of the other run.
    """

    kind: str
    what: str
    base: str
    other: str

    def __str__(self) -> str:
        what = f"{self.what} " if self.what else ""
        return f"{self.kind}: {what}{self.base or 'nothing'}, then {self.other or 'nothing'}"


def reasons(base: RunFiles, other: RunFiles, config: Iterable[Difference]) -> list[Reason]:
    """Every recorded difference that can change bits; the number of threads cannot."""
    manifests = base.manifest, other.manifest
    return [
        *_of_config(config),
        *_of_data(*manifests),
        *_of_computing(*manifests),
        *_of_versions(*manifests),
    ] or [*_of_changed_files(*manifests)]


def _of_config(config: Iterable[Difference]) -> Iterator[Reason]:
    for one in config:
        if one.may_matter:
            sides = (brief(side) if side else "" for side in (one.base, one.other))
            yield Reason("config", one.key, *sides)


def same_data(base: RunFiles, other: RunFiles) -> bool:
    """Whether all data have the same sha256."""
    ours, theirs = (_map(run.manifest, "data") for run in (base, other))
    return bool(ours) and ours == theirs and None not in ours.values()


def _of_data(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Reason]:
    ours, theirs = _map(base, "data"), _map(other, "data")
    files = [_map(one, "files") for one in (base, other)]
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


def _of_computing(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Reason]:
    """Device, instruction set, build and source of gradcli."""
    ours, theirs = _map(base, "origin"), _map(other, "origin")
    devices = [
        one.get("device", manifest.get("device"))
        for one, manifest in ((ours, base), (theirs, other))
    ]
    if devices[0] != devices[1]:
        yield Reason("device", "", *map(_text, devices))
    elif ours.get("group") != theirs.get("group"):
        yield Reason("instruction set", "", *(_text(one.get("isa")) for one in (ours, theirs)))
    for what in ("compiler", "flags", "source"):
        if ours.get(what) != theirs.get(what):
            size = DIGITS if what == "source" else LONGEST
            yield Reason("build", what, *(_text(one.get(what), size) for one in (ours, theirs)))
    commits = [_text(one.get("commit")) for one in (ours, theirs)]
    if commits[0] != commits[1]:
        yield Reason("gradcli", "commit", *commits)


def _of_changed_files(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Reason]:
    """One commit, with changes that only the file system knew."""
    commits = [_text(_map(one, "origin").get("commit")) for one in (base, other)]
    if commits[0] == commits[1] and commits[0].endswith(DIRTY):
        yield Reason("gradcli", "changes not committed", *commits)


def _of_versions(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Reason]:
    ours, theirs = _map(base, "versions"), _map(other, "versions")
    for package in (one for one in {**ours, **theirs} if one not in ONLY_SHOWN):
        if ours.get(package) != theirs.get(package):
            sides = (_text(one.get(package)) for one in (ours, theirs))
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
