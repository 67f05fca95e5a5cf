"""Whether the rows of a time series follow each other in time, by a column that says when."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from gradcli.data.files import path_text
from gradcli.data.tabular.cells import is_missing
from gradcli.data.tabular.parts import begins_of
from gradcli.data.tabular.reader import FIRST_ROW, TableReader
from gradcli.errors import DataError

_MOST = 1 << 20  # rows that are checked
# ISO 8601, which sorts as text; the zone apart.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)(Z|[+-]\d\d:?\d\d)?")


def step_back(open_reader: Callable[[], TableReader], names: Sequence[str]) -> str:
    """A sentence on the first step back in time in columns of dates or times.

    Empty where there is no such column, or where one never falls, which then gives the order.
    """
    with suppress(DataError):  # a column of lists has no words
        start = next(iter(open_reader().blocks(dict.fromkeys(names, "word"))), None)
        times = [name for name in names if start and _holds_times(start.words[name].table)]
        return _first_fall(open_reader(), times) if times else ""
    return ""


def _holds_times(words: Sequence[str]) -> bool:
    cells = [word for word in words if not is_missing(word, allowed=True)]
    return bool(cells) and all(map(_TIME.fullmatch, cells))


def _first_fall(reader: TableReader, times: Sequence[str]) -> str:
    """The fall of the first column, if all of them fall."""
    falls: dict[str, str] = {}
    before: dict[str, tuple[str, str | None]] = {}
    count = 0
    for block in reader.blocks(dict.fromkeys(times, "word")):
        if count in begins_of(reader):  # the next file is a series of its own
            before.clear()
        for name in [name for name in times if name not in falls]:
            words = block.words[name]
            for index, code in enumerate(words.codes):
                match = _TIME.fullmatch(words.table[code])
                if match is None:
                    continue
                now = match[1].replace("T", " "), match[2]
                last = before.get(name, now)
                before[name] = now
                if now < last and now[1] == last[1]:  # of two zones the order is another one
                    source, row = reader.locate(FIRST_ROW + count + index)
                    where = f"row {row} of {source}"
                    falls[name] = f"{path_text(name)!r} falls from {last[0]} to {now[0]} in {where}"
                    break
        count += block.count
        if len(falls) == len(times) or count > _MOST:
            break
    return falls[times[0]] if len(falls) == len(times) else ""
