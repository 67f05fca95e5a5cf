"""The files of a table: one, or all that match a pattern, as one table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TypeVar

from gradcli.data.files import Loaded, expanded, locate, path_text, read, regular_size
from gradcli.data.tabular.opening import Advance, is_packed, open_table
from gradcli.data.tabular.parts import PartsReader
from gradcli.data.tabular.reader import TableReader
from gradcli.errors import DataError

File = TypeVar("File", Path, Loaded)


def locate_files(text: str, root: Path) -> str:
    """The absolute path of a file written in a config, or the pattern that finds several."""
    if not has_magic(text) or os.path.lexists(root / expanded(text)):
        return str(locate(text, root))
    pattern = os.path.abspath(Path(escape(str(root))) / expanded(text))  # noqa: PTH100
    for path in _matches(pattern, text):
        locate(str(path), root)
    return pattern


def files_of(file: str) -> list[Path]:
    """The files that a located path or pattern names, sorted by the bytes of their names."""
    if not has_magic(file) or os.path.lexists(file):
        return [Path(file)]
    return _matches(file, file)


def _matches(pattern: str, text: str) -> list[Path]:
    names = sorted(glob(pattern), key=os.fsencode)  # noqa: PTH207 -- Path has none of absolute ones
    if not names:
        raise DataError(
            f"no data file matches the pattern '{path_text(text)}'"
            + (f" ({path_text(pattern)})" if pattern != text else "")
        )
    return [Path(name) for name in names]


def by_role(role: str, files: Sequence[Path]) -> Mapping[str, Path]:
    """Each file under its role: `train`, or `train[0]`, `train[1]` and so on for several."""
    if len(files) == 1:
        return {role: files[0]}
    return {f"{role}[{at}]": path for at, path in enumerate(files)}


def of_split(split: str, files: Mapping[str, File]) -> list[File]:
    """Those whose role is of a split, in the order of their rows."""
    return [file for role, file in files.items() if role.partition("[")[0] == split]


def open_files(
    files: Sequence[Path | Loaded], source: str, delimiter: str, advance: Advance | None = None
) -> TableReader:
    """A reader of one file, or of several as one table named `source`."""
    if len(files) == 1:
        return open_table(files[0], delimiter, advance)
    return PartsReader([partial(open_table, file, delimiter, advance) for file in files], source)


def text_size(files: Sequence[Path]) -> int | None:
    """Bytes of text in all files; None where one is packed or holds columns, and nobody knows."""
    packed = any(is_packed(read(path, 8)) for path in files)
    return None if packed else sum(map(regular_size, files))
