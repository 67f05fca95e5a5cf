"""SHA256SUMS beside data files, as `sha256sum` writes it and `sha256sum -c` reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path, PurePath

from gradcli.dataclass import dataclass
from gradcli.errors import DataError

SUMS = "SHA256SUMS"
# A backslash before the line says that the name has escapes; `*` marks binary mode.
_LINE = re.compile(r"(?P<escaped>\\?)(?P<sha256>[0-9a-fA-F]{64}) [ *]?+(?P<name>[^\0]+)", re.DOTALL)
_TAGGED = re.compile(
    r"(?P<escaped>\\?)SHA256 \((?P<name>[^\0]+)\) = (?P<sha256>[0-9a-fA-F]{64})", re.DOTALL
)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED = {"\\": "\\", "n": "\n", "r": "\r"}


@dataclass(frozen=True)
class Sums:
    """What a list says.

    Attributes:
        files: sha256 of files in the folder, by their bare names.
        elsewhere: names as written of files that are not in it, by their bare names.
    """

    files: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)


def parsed(data: bytes, folder: Path, source: str) -> Sums:
    """Parse the list in `data`, a file of `folder`.

    A name is relative to that folder, or to one above it, as `sha256sum data/*` writes it.
    """
    sums, numbers = Sums(), dict[str, int]()
    folders = {PurePath(os.path.abspath(folder)), PurePath(os.path.realpath(folder))}  # noqa: PTH100
    for number, sha256, name in _entries(data, source):
        bare = PurePath(name).name
        if not any(_lies_in(name, folder, parent) for parent in folders):
            if not os.path.lexists(folder / name):
                sums.elsewhere[bare] = name
        elif sums.files.setdefault(bare, sha256) != sha256:
            raise DataError(
                f"{source}:{number}: {_escape(bare)} has another sha256 in line {numbers[bare]}",
                code="E303",
                notes=("keep the line of the file that is meant",),
            )
        else:
            numbers.setdefault(bare, number)
    return sums


def _entries(data: bytes, source: str) -> Iterator[tuple[int, str, str]]:
    """Line, sha256 and name of each entry; comments and empty lines are passed over."""
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = os.fsdecode(raw.removesuffix(b"\r")).lstrip(" \t")
        if not line or line.startswith("#"):
            continue
        match = _TAGGED.fullmatch(line) or _LINE.fullmatch(line)
        name = match and (_unescaped(match["name"]) if match["escaped"] else match["name"])
        if not match or not name:
            raise DataError(
                f"{source}:{number}: expected 64 hex digits, two spaces and the name of a file, "
                "as sha256sum writes it",
                code="E303",
            )
        yield number, match["sha256"].lower(), name


def _unescaped(name: str) -> str | None:
    r"""The name that `\\`, `\n` and `\r` stand in; None where there is another escape."""
    if any(escape not in _ESCAPED for escape in _ESCAPE.findall(name)):
        return None
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], name)


def _lies_in(name: str, folder: Path, path: PurePath) -> bool:
    """Whether a name leads to a file in the folder at `path`, from there or from above."""
    plain = PurePath(os.path.normpath(path / name))
    if plain.parent == path or PurePath(name).is_absolute():
        return plain.parent == path
    outer = PurePath(os.path.normpath(name)).parent.parts
    return path.parts[-len(outer) :] == outer and not os.path.lexists(folder / name)


def _escape(name: str) -> str:
    return ascii(name)
