"""The header of a table against the columns that somebody asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from gradcli.data.files import path_text
from gradcli.data.tabular.doubtful import DoubtfulTable
from gradcli.data.tabular.reader import TableReader
from gradcli.errors import DataError
from gradcli.registry import did_you_mean

NO_NOTES: Mapping[str, str] = MappingProxyType({})
DELIMITERS = {"a comma": ",", "a semicolon": ";", "a tab": "\t", "a bar": "|"}


def need(reader: TableReader, columns: Sequence[str], notes: Mapping[str, str] = NO_NOTES) -> None:
    """Raise unless every column exists exactly once; `notes` are for missing columns."""
    header, source = reader.header, reader.source
    counts = Counter(header)
    twice = next((c for c in columns if counts[c] > 1), None)
    missing = [c for c in columns if c not in counts]
    if not missing and twice is None:
        return
    candidates = [name for name in header if name not in columns]
    what = (
        f"column '{path_text(twice)}' appears twice"
        if twice is not None
        else f"no column is called {_with_nearest(missing, candidates)}"
    )
    error = DataError(
        f"{source}: {what}",
        code="E304",
        notes=(
            *(notes[name] for name in missing if name in notes),
            f"needed are: {', '.join(columns)}",
            f"the file has: {path_text(', '.join(header))}",
            *_ways_out(header, columns),
        ),
    )
    raise reader.reject(error) if isinstance(reader, DoubtfulTable) else error


def _with_nearest(missing: Sequence[str], candidates: Sequence[str]) -> str:
    """Names that no column has, each with the nearest name of a column."""
    near = {name: path_text(did_you_mean(name, candidates)) for name in missing}
    if len(missing) == 1:
        [(name, question)] = near.items()
        return f"{name!r}; {question}" if question else repr(name)
    return ", ".join(f"{name!r} ({near[name]})" if near[name] else repr(name) for name in missing)


def _ways_out(header: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    """Where the columns are there, but for another delimiter or spaces around their names."""
    plain = {name.strip() for name in header}
    if set(columns) <= plain and not set(columns) <= set(header):
        yield "the names in the file have spaces around them; take those out"
    for name, delimiter in DELIMITERS.items():
        if len(header) == 1 and set(columns) <= set(header[0].split(delimiter)):
            yield f'its delimiter is {name}: write data.delimiter: "{path_text(delimiter)}"'
