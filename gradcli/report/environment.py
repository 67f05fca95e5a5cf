"""What a run was made with: machine, versions, build, data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.report.fields import mapping, moment, text

TITLES = {
    "created": "begun",
    "host": "host",
    "device": "device",
    "threads": "threads",
    "seed": "seed",
    "git": "commit of the folder",
}
OURS = ("gradcli", "python", "platform")
MOST = 60


def environment(manifest: Mapping[str, Any], status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values, those that the manifest has."""
    return list(_rows(manifest, status))[:MOST]


def _rows(manifest: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, title in TITLES.items():
        if manifest.get(key) is not None:
            value = manifest[key]
            yield title, moment(value) if key == "created" else _words(value)
    yield from _versions(mapping(manifest.get("versions")))
    for key, value in mapping(manifest.get("origin")).items():
        yield f"build: {text(key)}", _words(value)
    files = mapping(manifest.get("files"))
    for key, value in mapping(manifest.get("data")).items():
        prefix = f"{_words(files[key])}, " if key in files else ""
        sha256 = "not read to its end yet" if value is None else _words(value)
        yield f"data: {text(key)}", f"{prefix}sha256 {sha256}"
    if status.get("weights_sha256"):
        yield "weights sha256", _words(status["weights_sha256"])


def _versions(versions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The versions of gradcli and the machine, then all packages in one row."""
    for key in OURS:
        if key in versions:
            yield key, _words(versions[key])
    packages = [
        f"{text(key)} {_words(value)}" for key, value in versions.items() if key not in OURS
    ]
    if packages:
        yield "packages", ", ".join(packages[:MOST])


def _words(value: object) -> str:
    return text(value)[:500]
