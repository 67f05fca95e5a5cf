"""Small tables, read whole into memory at each start: once for `facts` and `load` together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gradcli.data.files import load, path_text
from gradcli.data.fitted_table import FittedTable
from gradcli.data.tabular.table_files import of_split, open_files

if TYPE_CHECKING:
    from gradcli.data.csv import CsvSource

# The hashes of the files by their roles, and notes on them; the table.
_Read = tuple[tuple[Mapping[str, str], tuple[str, ...]], FittedTable]


class _LastTable:
    """The table that was read last, between `facts` and `load` of one start."""

    def __init__(self) -> None:
        self._last: tuple[object, _Read] | None = None

    def remember(self, source: CsvSource) -> _Read:
        """The table of a source, read unless it is the last one."""
        key = _key(source)
        if self._last is None or self._last[0] != key:
            self._last = None  # frees the last table before the next is read
            loaded = {role: load(path) for role, path in source.paths().items()}
            train, tests = of_split("train", loaded), of_split("test", loaded)
            hashes = {role: file.sha256 for role, file in loaded.items()}
            about = hashes, tuple(note for file in loaded.values() for note in file.notes())
            reopen = partial(open_files, train, path_text(source.file), source.delimiter)
            fitted = FittedTable.of(source, reopen(), reopen)
            if tests:
                fitted = fitted.with_test(source.labelled(tests, fitted.facts))
            self._last = key, (about, fitted)
        return self._last[1]

    def take(self, source: CsvSource) -> _Read:
        """The same, which is then forgotten."""
        result = self.remember(source)
        self._last = None
        return result


def _key(source: CsvSource) -> object:
    """The source but for what does not shape its table, and its files as they lie there."""
    states = [path.stat() for path in source.paths().values()]
    times = [(s.st_size, s.st_ino, s.st_dev, s.st_mtime_ns, s.st_ctime_ns) for s in states]
    return replace(source, target_scale=None, cache=None), times


read = _LastTable()
