"""What the YAML reader returns: values that know where they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from operator import is_
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError, GradcliError, Location
from gradcli.wording import quantity

Scalar = None | bool | int | float | str
Path = tuple[str | int, ...]
MAX_MISTAKES = 50
_LONGEST = 2000  # characters of a sentence that quotes a name of any length
RUN_VALUES = 1 << 16  # of a resolved config: it says each default of each layer
MAX_VALUES = 1 << 14  # of all files of a config together; what uses of blocks put in comes on top


@dataclass(frozen=True)
class YamlNode:
    """One value of a YAML file: a scalar, a list of nodes or a map from text to nodes.

    Attributes:
        value: the scalar itself, or the list or map of further nodes.
        location: where it stands.
        keys: for a map, where each of its keys stands.
        quoted: the scalar was written in quotes, so it is text whatever it looks like.
        broken: an error was reported for this value; nothing more is said about it.
    """

    value: Scalar | list[YamlNode] | dict[str, YamlNode]
    location: Location
    keys: dict[str, Location] = field(default_factory=dict)
    quoted: bool = False
    broken: bool = False

    def map(self) -> dict[str, YamlNode]:
        """The entries of a map; of anything else, none."""
        return self.value if isinstance(self.value, dict) else {}

    def list(self) -> list[YamlNode]:
        """The items of a list; of anything else, none."""
        return self.value if isinstance(self.value, list) else []

    def entry(self) -> tuple[str, YamlNode, Location] | None:
        """Name, value and place of `name` or `name: value`; None for anything else."""
        if isinstance(self.value, str):
            return self.value, YamlNode({}, self.location), self.location
        if len(self.map()) != 1:
            return None
        [(name, value)] = self.map().items()
        return name, value, self.keys[name]

    def with_items(self, change: Callable[[YamlNode], YamlNode]) -> YamlNode:
        """The same list or map with each item changed; of anything else, the same."""
        if isinstance(self.value, dict):
            entries = {key: change(item) for key, item in self.value.items()}
            same = all(map(is_, entries.values(), self.value.values()))
            return self if same else replace(self, value=entries)
        if isinstance(self.value, list):
            items = [change(item) for item in self.value]
            return self if all(map(is_, items, self.value)) else replace(self, value=items)
        return self

    def plain(self) -> Any:
        """The same value without places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, YamlNode]]:
        """This node and all below it, each with its path."""
        yield path, self
        for key, item in self.map().items():
            yield from item.walk((*path, key))
        for index, item in enumerate(self.list()):
            yield from item.walk((*path, index))

    def location_quoted_in(self, message: str) -> Location | None:
        """Where the first text stands that a message quotes, or names as a table's column."""
        for _, item in self.walk():
            text = item.value if isinstance(item.value, str) else ""
            if text and (f"'{text}'" in message or f" ({text}): " in message):
                return item.location
        return None

    def at(self, path: Path) -> tuple[YamlNode, Path]:
        """The deepest existing node along `path`, and the part of the path that leads to it."""
        node, depth = self, 0
        for step in path:
            below = node.map().get(step) if isinstance(step, str) else None
            if isinstance(step, int) and step < len(node.list()):
                below = node.list()[step]
            if below is None:
                break
            node, depth = below, depth + 1
        return node, path[:depth]


class ErrorReport:
    """Collects the errors and warnings of one config, so that all are shown at once."""

    def __init__(self, limit: int = MAX_VALUES) -> None:
        self.limit = limit
        self.errors: list[GradcliError] = []
        self.warnings: list[GradcliError] = []
        self._values = 0

    def count(self, values: int, location: Location) -> None:
        """Note so many more values; too many of them end the reading."""
        self._values += values
        if self._values > self.limit:
            raise ConfigError(
                f"a config has at most {quantity(self.limit, 'value')}", location=location
            )

    def error(
        self,
        code: str,
        message: str,
        location: Location | None,
        caret: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        """Note a mistake in the config; too many of them end the reading.

        Otherwise a file of a million mistakes would take minutes to judge.
        """
        if len(self.errors) >= MAX_MISTAKES:
            more = f"there are more than {MAX_MISTAKES} mistakes; the rest is not shown"
            raise ConfigError(more, location=location)
        message = message if len(message) <= _LONGEST else message[: _LONGEST - 3] + "..."
        self.errors.append(
            ConfigError(message, code=code, location=location, caret=caret, notes=notes)
        )

    def warn(self, code: str, message: str, location: Location | None, caret: str = "") -> None:
        """Note something that is allowed and probably not meant."""
        if len(self.warnings) > MAX_MISTAKES:
            return
        if len(self.warnings) == MAX_MISTAKES:
            message, caret = f"more than {MAX_MISTAKES} warnings; the rest is not shown", ""
        self.warnings.append(ConfigError(message, code=code, location=location, caret=caret))


def describe(node: YamlNode) -> str:
    """What a reader of the file sees at this node, for 'got ...'."""
    value = node.value
    if value is None:
        return "no value (null)"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, str):
        short = value if len(value) <= 60 else value[:57] + "..."
        return f"text {short!r}"
    return f"{value!r}"
