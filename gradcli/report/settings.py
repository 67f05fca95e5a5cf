"""Each value of the config that ran, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import field
from typing import Any, NamedTuple

from gradcli.config.node import ErrorReport
from gradcli.config.reader import read_yaml
from gradcli.dataclass import dataclass
from gradcli.errors import GradcliError
from gradcli.report.fields import mapping, text
from gradcli.report.run_files import RunFiles

MOST_VALUES = 1000


class Setting(NamedTuple):
    """A value of the config by its dotted key."""

    key: str
    words: str
    origin: str
    location: str

    @property
    def short(self) -> str:
        """The key without its section."""
        return self.key.partition(".")[2] or self.key

    @property
    def source(self) -> str:
        """Where the value comes from, in few letters: a file's line without its folders."""
        if self.origin in ("file", "extends") and self.location:
            return self.location.rpartition("/")[2]
        return self.location or self.origin


@dataclass(frozen=True)
class SettingsTable:
    """The config as it ran.

    Attributes:
        sections: its values by their first key.
        has_origins: whether it is known where each comes from.
        expect: what stands under `expect`.
    """

    sections: dict[str, list[Setting]] = field(default_factory=dict)
    has_origins: bool = False
    expect: dict[str, Any] = field(default_factory=dict)


def settings(run: RunFiles) -> SettingsTable:
    """The values of resolved.yaml, with their origins if the run recorded them."""
    config = _read_resolved(run)
    origins = mapping(run.origins.get("values"))
    values = _with_origins(origins) if origins else _leaves(config)
    sections: dict[str, list[Setting]] = {}
    for number, value in enumerate(values):
        if number >= MOST_VALUES:
            break
        section, dot, _ = value.key.partition(".")
        sections.setdefault(section if dot else "run", []).append(value)
    return SettingsTable(sections, bool(origins), mapping(config.get("expect")))


def _with_origins(origins: dict[str, Any]) -> Iterator[Setting]:
    for key, entry in origins.items():
        fields = mapping(entry)
        yield Setting(
            text(key),
            _words(fields.get("value")),
            text(fields.get("origin")),
            text(fields.get("place")),
        )


def _leaves(value: object, key: str = "") -> Iterator[Setting]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{key}.{index}")
    else:
        yield Setting(text(key), _words(value), "", "")


def _words(value: object) -> str:
    """A value as YAML's flow style has it."""
    return text(value) if isinstance(value, str) else text(json.dumps(value, ensure_ascii=False))


def _read_resolved(run: RunFiles) -> dict[str, Any]:
    try:
        return mapping(read_yaml(run.resolved_text, "resolved.yaml", ErrorReport()).plain())
    except GradcliError as error:
        run.note("resolved.yaml", f"resolved.yaml is damaged: {error.message}")
        return {}
