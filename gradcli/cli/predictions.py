"""Predictions as text, JSON, JSON Lines or CSV: records in, one form out.

A record has `file`, `index`, `name` and either `label`, `probability`, `probabilities` (a number
for each class) and `top`, or `values` (a number for each target).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.cells import cells
from gradcli.data.files import path_text
from gradcli.errors import ConfigError, RunError
from gradcli.table import Column, lines
from gradcli.train.atomic import write_file
from gradcli.train.json_file import FORMAT

if TYPE_CHECKING:
    from gradcli.train.predict import Predictor

Record = Mapping[str, Any]


def line(record: Record, width: int | None = None) -> str:
    """File, index, then label and probability of each class, or the values, separated by tabs.

    A row that is wider than a terminal of `width` is shortened.
    """
    row = [path_text(record["file"]), str(record["index"])]
    columns = [Column(0, "label", gap=0), Column(0)]
    for index, guess in enumerate(record.get("top", [])):
        row += [path_text(guess["label"]), f"{guess['probability']:.4f}"]
        rank = 2 * index
        columns += [Column(0, "label", gap=2, rank=rank), Column(0, rank=rank and rank + 1)]
    for rank, value in enumerate(record.get("values", {}).values()):
        row.append(f"{value:.6g}")
        columns.append(Column(0, gap=2, rank=rank))
    text = "\t".join(row)
    if width is None or cells(text.expandtabs()) <= width:
        return text
    return lines(columns, [row], width)[0]


def json_lines(records: Iterable[Record]) -> Iterator[str]:
    """An object a line, each with the format, so that a part of the file stands for itself."""
    for record in records:
        yield json.dumps({"format": FORMAT, **record}, allow_nan=False) + "\n"


def csv_lines(records: Iterable[Record]) -> Iterator[str]:
    """A header, then a row a sample; a number inside `values` is in the column `values.NAME`."""
    columns: list[str] = []
    for record in records:
        row = _flat(record)
        if not columns:
            columns = [*row]
            yield _csv_row(columns)
        yield _csv_row(row.values())


def _flat(record: Record) -> dict[str, Any]:
    """The record's cells by the name of their column; `top` says nothing new."""
    row: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= {f"{key}.{name}": number for name, number in value.items()}
        elif key != "top":
            row[key] = value
    return row


def _csv_row(cells: Iterable[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


FORMS: Mapping[str, Callable[[Iterable[Record]], Iterator[str]]] = {
    ".jsonl": json_lines,
    ".csv": csv_lines,
}


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse a file whose form is not known, or that would be lost."""
    if out.suffix.lower() not in FORMS:
        raise ConfigError(
            f"--out {path_text(out)}: the name must end in {' or '.join(FORMS)}; without --out the "
            "predictions are printed, with --json as one object"
        )
    if out.exists() and not (overwrite and out.is_file()):
        cure = "--overwrite replaces it" if out.is_file() else "it is no regular file"
        raise ConfigError(f"--out {path_text(out)}: there is such a file already; {cure}")


def check_apart(out: Path | None, predictor: Predictor, files: Iterable[Path]) -> None:
    """Refuse to write over one of the files that are read."""
    if out is not None and predictor.reads(out, files):
        raise ConfigError(
            f"--out {path_text(out)}: that is one of the files to predict, and would be lost; give "
            "another name"
        )


def write(out: Path, records: Iterable[Record]) -> int:
    """Write the records in the format of the file's suffix, all or nothing; return their number."""
    count = 0

    def tally() -> Iterator[Record]:
        nonlocal count
        for record in records:
            count += 1
            yield record

    lines = FORMS[out.suffix.lower()](tally())
    try:
        write_file(out, (text.encode("utf-8", "backslashreplace") for text in lines))
    except OSError as error:
        raise RunError(f"cannot write {path_text(out)}: {error.strerror}") from error
    return count
