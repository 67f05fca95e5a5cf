"""Our YAML reader: PyYAML's events, YAML 1.2 values, a place for everything, no surprises.

PyYAML's own constructors read `1e-3` as text, `no` as false and `017` as octal, keep the last of
two equal keys, and build Python objects from tags. Here the events become nodes directly; tags,
anchors, aliases and merge keys are refused, so no file can run code or grow when it is read.
"""

from __future__ import annotations

import math
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from gradcli.config.node import ErrorReport, Scalar, YamlNode
from gradcli.errors import ConfigError, Location
from gradcli.numerals import SMALLEST, becomes_zero
from gradcli.registry import closest
from gradcli.wording import join_words, quantity

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_DIGITS = 300
MAX_KEY = 1024  # characters, as YAML itself says of keys without a question mark
_COUNT_EVERY = 256  # values at a time

_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Everything YAML calls unprintable; surrogates reach us through the bytes of an argument.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# libyaml where PyYAML was built with it: the same events, ten times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: Path) -> str:
    """The text of a config file; every way in which it cannot be read is a ConfigError."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ConfigError(f"{path} is a directory, not a config file", notes=_yaml_files(path))
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not a regular file")
        if status.st_size > MAX_BYTES:
            raise ConfigError(
                f"{path} has {quantity(status.st_size, 'byte')}; a config has at most {MAX_BYTES} "
                "bytes",
                notes=way_on(path),
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}", notes=_near_files(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{str(path)!r} cannot be read: {reason}") from None
    return _decode(data, str(path))


def _decode(data: bytes, file: str) -> str:
    """Bytes as UTF-8 text without a byte-order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ConfigError(
            f"{file} is not UTF-8 text: byte {data[error.start]:#04x} at byte offset {error.start}",
            code="E105",
            location=Location(file, line, column),
            notes=way_on(Path(file)),
        ) from None


def way_on(path: Path) -> tuple[str, ...]:
    """What to do where data stands in the place of a config."""
    if path.suffix in (".yaml", ".yml"):
        return ()
    data = shlex.quote(str(path))
    return (f"a config is a YAML file that names its data; `gradcli init {data}` writes one",)


def _yaml_files(folder: Path) -> tuple[str, ...]:
    try:
        files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return ()
    names = sorted(path.name for path in files if path.suffix in (".yaml", ".yml"))
    return (f"YAML files in {folder}: {join_words(names, 8)}",) if names else ()


def _near_files(path: Path) -> tuple[str, ...]:
    """A file of nearly this name, or the YAML files that lie where it was looked for."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return (f"the folder {path.parent} does not exist or cannot be read",)
    near = closest(path.name, names)
    return (f"did you mean {path.parent / near}?",) if near else _yaml_files(path.parent)


def read_yaml(text: str, file: str, report: ErrorReport) -> YamlNode:
    """The one document in `text` as a YamlNode.

    Syntax errors raise; errors that leave the rest readable go to `report`.
    """
    lines = _LINE_END.split(text)

    def location(line: int, column: int, width: int = 1) -> Location:
        source = lines[line] if line < len(lines) else ""
        return Location(file, line + 1, column + 1, max(1, width), source)

    return _read(text, location, report)


def read_value(text: str, location: Location, report: ErrorReport) -> YamlNode:
    """The value of an override; everything in it stands at `location`."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"an override has at most {MAX_BYTES} characters", location=location)
    return _read(text, lambda line, column, width=1: location, report)


def _read(text: str, location: Callable[..., Location], report: ErrorReport) -> YamlNode:
    bad = _UNPRINTABLE.search(text)
    if bad:
        before = _LINE_END.split(text[: bad.start()])
        raise ConfigError(
            f"character {ord(bad.group()):#06x} is not allowed in YAML",
            code="E105",
            location=location(len(before) - 1, len(before[-1])),
        )
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER), location, report).document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, location) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"this is not YAML: {error}", code="E105") from None


def _syntax_error(
    error: yaml.MarkedYAMLError, text: str, location: Callable[..., Location]
) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    where = location(line, column)
    problem = f"YAML cannot be read here: {error.problem or error.context}"
    if "nesting depth" in problem:  # of the library, which gives up far beyond ours
        problem = f"nested deeper than {MAX_DEPTH} levels"
    if where.text[column : column + 1] == "\t":
        problem = "a tab cannot indent YAML; use spaces"
    notes: tuple[str, ...] = ()
    if error.context and error.context_mark and error.context_mark.line != line:
        notes = (f"{error.context} that began at line {error.context_mark.line + 1}",)
        if "block" in error.context:
            notes += ("what belongs together begins in the same column",)
    return ConfigError(problem, code="E105", location=where, notes=notes)


class _Builder:
    """Turns the stream of events into nodes; stops at the first one that is too deep.

    An event is Any: its attributes differ by kind, and the stubs know none of them.
    """

    def __init__(
        self, events: Iterator[Any], location: Callable[..., Location], report: ErrorReport
    ) -> None:
        self.events = events
        self.location = location
        self.report = report
        self.values = 0

    def document(self) -> YamlNode:
        """The only document of the stream."""
        next(self.events)  # the stream begins
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            return YamlNode(None, self.location(0, 0))
        if start.version or start.tags:
            self._refuse(start, "YAML directives (%) are not allowed")
        root = self._node(next(self.events), 1)
        next(self.events)  # the document ends
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise ConfigError(
                "a config is one YAML document; a second one begins here",
                code="E105",
                location=self._at(after),
            )
        return root

    def _node(self, event: Any, depth: int) -> YamlNode:
        if depth > MAX_DEPTH:
            raise ConfigError(
                f"nested deeper than {MAX_DEPTH} levels", code="E105", location=self._at(event)
            )
        self.values += 1
        if self.values % _COUNT_EVERY == 0:
            self.report.count(_COUNT_EVERY, self._at(event))
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, "YAML aliases (*) are not allowed; write $a.b, or use vars:")
            return YamlNode(None, self._at(event), broken=True)
        broken = self._refuse_marks(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, broken)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth, broken)
        return self._mapping(event, depth, broken)

    def _refuse_marks(self, event: Any) -> bool:
        """Report tags and anchors, which are not allowed; true if the value has one."""
        if event.anchor:
            self._refuse(event, "YAML anchors (&) are not allowed; write $a.b, or use vars:")
        if event.tag:
            self._refuse(event, f"YAML tags are not allowed (here: {event.tag})")
        return bool(event.anchor or event.tag)

    def _scalar(self, event: yaml.ScalarEvent, broken: bool) -> YamlNode:
        location = self._at(event)
        if not event.implicit[0]:
            return YamlNode(event.value, location, quoted=True, broken=broken)
        try:
            return YamlNode(_plain_value(event.value), location, broken=broken)
        except ValueError as error:
            self.report.error("E104", str(error), location)
            return YamlNode(None, location, broken=True)

    def _sequence(self, start: yaml.Event, depth: int, broken: bool) -> YamlNode:
        items = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return YamlNode(items, self._span(start, event), broken=broken)

    def _mapping(self, start: yaml.Event, depth: int, broken: bool) -> YamlNode:
        items: dict[str, YamlNode] = {}
        keys: dict[str, Location] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key_location = self._at(event)
            key = self._key(event, depth)
            item = self._node(next(self.events), depth + 1)
            if key is None:
                continue
            if key in items:
                self._duplicate(key, keys[key], key_location)
                continue
            items[key], keys[key] = item, key_location
        return YamlNode(items, self._span(start, event), keys, broken=broken)

    def _key(self, event: yaml.Event, depth: int) -> str | None:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key is one word or quoted text")
            self._node(event, depth + 1)
            return None
        if self._refuse_marks(event):
            return None
        if len(event.value) > MAX_KEY:
            self._refuse(event, f"a key has at most {MAX_KEY} characters")
            return None
        if event.value == "<<" and event.implicit[0]:
            self._refuse(event, "YAML merge keys (<<) are not allowed; use extends:")
            return None
        return str(event.value)

    def _duplicate(self, key: str, first: Location, second: Location) -> None:
        self.report.error(
            "E106",
            f"key {key!r} is given twice: at line {first.line} and at line {second.line}",
            second,
            caret=f"first given at line {first.line}",
        )

    def _refuse(self, event: yaml.Event, message: str) -> None:
        self.report.error("E105", message, self._at(event))

    def _at(self, event: yaml.Event) -> Location:
        return self._span(event, event)

    def _span(self, start: Any, end: Any) -> Location:
        first, last = start.start_mark, end.end_mark
        width = last.column - first.column if first.line == last.line else 1
        return self.location(first.line, first.column, width)


def _plain_value(text: str) -> Scalar:
    """Read an unquoted scalar by the YAML 1.2 core schema, without its traps."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _OTHER_INTEGER.fullmatch(text):
        _check_length(text, text[2:])
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError(f"{_short(text)} is too large: numbers end at 1.8e308, so not finite")
        if becomes_zero(text, value):
            raise ValueError(
                f"{_short(text)} is too small: numbers begin at {SMALLEST}, so it would be 0"
            )
        return value
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0":
        raise ValueError(
            f"{_short(text)} has a leading zero; write {digits.lstrip('0') or '0'}, or quote it"
        )
    _check_length(text, digits)
    return int(text)


def _check_length(text: str, digits: str) -> None:
    if len(digits) > MAX_DIGITS:
        raise ValueError(
            f"{_short(text)} has {quantity(len(digits), 'digit')}; at most {MAX_DIGITS} are read"
        )


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
