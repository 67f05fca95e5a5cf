"""origins.json: where each value of a run's config comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gradcli.train.json_file import FORMAT, read_json

if TYPE_CHECKING:
    from gradcli.train.directory import RunDirectory

FILE = "origins.json"
Kind = Literal["default", "file", "extends", "override", "ranks"]


class ValueOrigin(NamedTuple):
    """Where a value comes from.

    Attributes:
        origin: a default, the config file, a file that it extends, the command line, or the number
            of ranks.
        place: file and line, or the words of the command line.
    """

    value: Any
    origin: Kind = "default"
    place: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry in origins.json."""
        odd = isinstance(self.value, float) and not math.isfinite(self.value)
        return {**self._asdict(), "value": str(self.value) if odd else self.value}


def as_json(origins: Mapping[str, ValueOrigin]) -> dict[str, Any]:
    """The values of origins.json."""
    return {key: origin.as_json() for key, origin in origins.items()}


def with_origins(
    origins: Mapping[str, ValueOrigin], earlier: Mapping[str, ValueOrigin]
) -> dict[str, ValueOrigin]:
    """The origins, with the earlier ones in place of overrides."""
    return {
        key: earlier.get(key, origin) if origin.origin == "override" else origin
        for key, origin in origins.items()
    }


def write(directory: RunDirectory, origins: Mapping[str, ValueOrigin]) -> None:
    """Write the origins of a new run."""
    _write(directory, as_json(origins))


def renew(directory: RunDirectory, origins: Mapping[str, ValueOrigin]) -> None:
    """Update the origins of a resumed run with the values that its own config does not have.

    All other values keep their origins; a run without the file stays without it.
    """
    before = read_json(directory.path / FILE).get("values")
    if not isinstance(before, dict):
        return
    own = f"{directory.path / 'resolved.yaml'}:"
    values = {}
    for key, origin in origins.items():
        new = origin.origin != "default" and not (origin.place or "").startswith(own)
        entry = {} if new else before.get(key)
        values[key] = {**origin.as_json(), **(entry if isinstance(entry, dict) else {})}
    if values != before:
        _write(directory, values)


def _write(directory: RunDirectory, values: Mapping[str, Any]) -> None:
    directory.write_json(FILE, {"format": FORMAT, "values": values}, flush=False)
