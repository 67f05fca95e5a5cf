"""The header of a table against the columns that somebody asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gradcli.data.files import shown
from gradcli.data.tabular.doubtful import Doubtful
from gradcli.data.tabular.reader import TableReader
from gradcli.errors import DataError
from gradcli.registry import did_you_mean

DELIMITERS = {"a comma": ",", "a semicolon": ";", "a tab": "\t", "a bar": "|"}


def need(reader: TableReader, columns: Sequence[str]) -> None:
    """Every column exists exactly once; shows both lists otherwise."""
    header, source = reader.header, reader.source
    counts = Counter(header)
    twice = next((c for c in columns if counts[c] > 1), None)
    missing = [c for c in columns if c not in counts]
    if not missing and twice is None:
        return
    what = (
        f"column '{shown(twice)}' appears twice"
        if twice is not None
        else f"no column is called {', '.join(map(repr, missing))}"
    )
    others = [name for name in header if name not in columns]
    near = did_you_mean(missing[0], others) if len(missing) == 1 else ""
    what += f"; {shown(near)}" if near else ""
    error = DataError(
        f"{source}: {what}",
        code="E304",
        notes=(
            f"needed are: {', '.join(columns)}",
            f"the file has: {shown(', '.join(header))}",
            *_ways_out(header, columns),
        ),
    )
    raise reader.why(error) if isinstance(reader, Doubtful) else error


def _ways_out(header: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    """Where the columns are there, but for another delimiter or spaces around their names."""
    plain = {name.strip() for name in header}
    if set(columns) <= plain and not set(columns) <= set(header):
        yield "the names in the file have spaces around them; take those out"
    for name, delimiter in DELIMITERS.items():
        if len(header) == 1 and set(columns) <= set(header[0].split(delimiter)):
            yield f'its delimiter is {name}: write data.delimiter: "{shown(delimiter)}"'
