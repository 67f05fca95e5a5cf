"""Texts as documents: a file each, or the lines of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from gradcli.data.files import path_text
from gradcli.data.tabular.pieces import lines_in, pieces_of, texts
from gradcli.errors import DataError
from gradcli.wording import join_words, quantity

LONGEST = 64 << 20  # characters of a line
Advance = Callable[[int], object]
Part = tuple[str, bool]  # some text of a document, and whether the document ends with it


def documents(path: Path, key: str | None, advance: Advance | None = None) -> Iterator[Part]:
    """The documents of a file, gzipped or not, each in one part or more.

    Without a `key` it is one document; else each line is an object that has its text there.
    The unpacked bytes are reported to `advance` as they are read.
    """
    content = texts(_report_progress(pieces_of(path), advance), path_text(path))
    if key is not None:
        yield from ((text, True) for text in _of_lines(content, key, path_text(path)))
        return
    for text in content:
        if text:
            yield text, False
    yield "", True


def _report_progress(pieces: Iterator[bytes], advance: Advance | None) -> Iterator[bytes]:
    for piece in pieces:
        if advance is not None:
            advance(len(piece))
        yield piece


def _of_lines(content: Iterator[str], key: str, source: str) -> Iterator[str]:
    for number, line in enumerate(lines_in(content, LONGEST), 1):
        if len(line) > LONGEST:
            what = f"a line of more than {quantity(LONGEST, 'character')}"
            raise DataError(f"{source}:{number}: {what}", code="E304")
        if line.strip():
            yield _text_in(line, key, f"{source}:{number}")


def _text_in(line: str, key: str, location: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(":")[0]
        what = f"expected a JSON object in each line: {reason}"
        raise DataError(f"{location}: {what}", code="E304") from None
    if not isinstance(row, dict) or key not in row:
        keys = join_words(map(path_text, row), 5) if isinstance(row, dict) else ""
        there = f"; its keys: {keys or 'none'}" if isinstance(row, dict) else ""
        what = f"expected an object with the key {key!r}{there}"
        raise DataError(f"{location}: {what}", code="E304")
    text = row[key]
    if not isinstance(text, str):
        what = f"expected text under {key!r}, found {type(text).__name__}"
        raise DataError(f"{location}: {what}", code="E304")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        what = "half of a surrogate pair, which is no character"
        raise DataError(f"{location}: {what}", code="E304")
    return text
