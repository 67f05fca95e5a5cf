"""Records of log.jsonl as they stand there, fast, passing over lines that are none."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_LINE = 1 << 20  # bytes: a record with the tables of a thousand classes is longer than no line
BLOCK = 1 << 17  # its records stay in the cache


class LogLines:
    """The records of a log from a byte on.

    Attributes:
        end: the byte behind the last whole line so far; a log that grows is read on from there.
        damaged: how many lines are no record.
        too_long: how many lines have more than `MOST_LINE` bytes.
        torn: whether the last line was cut off as it was written.
    """

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self.end = start
        self.damaged = 0
        self.too_long = 0
        self.torn = False
        self._skipping = False  # inside a line that is too long

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each record."""
        for records in self.blocks():
            yield from records

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """The records, many at a time; the file may grow meanwhile.

        Raises:
            OSError: it cannot be read, or is no regular file.
        """
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(self.path, flags), "rb") as stream:  # noqa: PTH123 -- a handle is no path
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OSError("it is no regular file")
            stream.seek(self.end)
            rest = b""
            while block := stream.read(BLOCK):
                rest += block
                cut = rest.rfind(b"\n") + 1
                if cut:
                    self.end += cut
                    yield self._records(rest[:cut])
                    rest = rest[cut:]
                rest = self._without_too_long(rest)
            yield self._last(rest)

    def _without_too_long(self, rest: bytes) -> bytes:
        """Drop the begin of a line that is too long already; its end will be passed over."""
        if len(rest) <= MOST_LINE:
            return rest
        self.end += len(rest)
        self._skipping = True
        return b""

    def _records(self, block: bytes) -> list[dict[str, Any]]:
        """The records of whole lines; the first may be the end of one that is too long."""
        if self._skipping:
            self._skipping = False
            self.too_long += 1
            block = block[block.index(b"\n") + 1 :]
        together = _together(block)
        if together is not None:
            return together
        lines = block.split(b"\n")
        return [record for line in lines if (record := self._record(line)) is not None]

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """The record of one line; None, and a count, where it is none."""
        if not line.strip():
            return None
        if len(line) > MOST_LINE:
            self.too_long += 1
            return None
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_no_number)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        self.damaged += 1
        return None

    def _last(self, rest: bytes) -> list[dict[str, Any]]:
        """A last line without its line break: a whole record, or one that was cut off."""
        if self._skipping:
            self.too_long += 1
        if not rest or self._skipping:
            return []
        before = self.damaged
        record = self._record(rest)
        if record is not None:
            self.end += len(rest)
            return [record]
        if self.damaged > before:
            self.damaged, self.torn = before, True
        return []


def _no_number(word: str) -> None:
    """NaN and infinity are no JSON; they count as no figure."""
    del word


def _together(block: bytes) -> list[dict[str, Any]] | None:
    """Many lines parsed in one go, which is several times as fast; None where any is odd."""
    if len(block) > MOST_LINE and max(map(len, block.split(b"\n"))) > MOST_LINE:
        return None
    try:
        text = f"[{block[:-1].decode('utf-8')}]".replace("\n", ",\n")
        values: list[dict[str, Any]] = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    # A line break inside an object would make one record of two lines.
    if len(values) != block.count(b"\n") or set(map(type, values)) - {dict}:
        return None
    return values
