"""What is new in the files of a run since a place in its log: for a page that is kept up to date.

The run may be of another process, and may end, go on or cut its log back meanwhile.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from gradcli.report.log_curves import OF_STEPS
from gradcli.report.log_lines import MOST_LINE, LogLines
from gradcli.report.run_files import number
from gradcli.train.directory import LOG
from gradcli.train.lock import is_held

# Files whose change shows in other places of the page than the curves.
STATE_FILES = ("status.json", "evaluation.json", "manifest.json", "plan.json", "origins.json")
MOST_RECORDS = 2000  # of one look; a page that is made anew is smaller
MOST_BYTES = 4 << 20
TRACE = 64  # bytes before a place, by which it is recognised
_MARK = re.compile(r"([0-9]{1,15})-([0-9]{1,10})-([0-9]{1,10})")


class Mark(NamedTuple):
    """What somebody knows of a run: equal where there is nothing new.

    Attributes:
        offset: the place in the log behind its last whole line.
        check: a checksum of what stands before that place; another log has another.
        checksum: of the state of the other files.
    """

    offset: int
    check: int
    checksum: int

    def __str__(self) -> str:
        return "-".join(map(str, self))


def mark_in(text: str) -> Mark | None:
    """The mark that a text says, if it says one."""
    parts = _MARK.fullmatch(text)
    return Mark(*map(int, parts.groups())) if parts else None


def mark_of(path: Path) -> Mark:
    """The mark of a run as it is; an absent or damaged file raises nothing."""
    log = path / LOG
    size = _size(log)
    begin = max(0, size - MOST_LINE)
    end = begin + _read(log, begin, size - begin).rfind(b"\n") + 1
    return Mark(end, _check(log, end), _checksum(path))


class News(NamedTuple):
    """What came since the last look.

    Attributes:
        records: figures of new lines of the log.
        renew: whether the page has to be made anew, for more has changed.
    """

    records: list[dict[str, Any]]
    renew: bool


class Feed:
    """Looks at a run again and again; nothing is raised for a file that is absent or damaged.

    Attributes:
        mark: what was told so far.
    """

    def __init__(self, path: Path, mark: Mark) -> None:
        self._path = path
        self.mark = mark

    def look(self) -> News:
        """What is new since the last look."""
        log, mark = self._path / LOG, self.mark
        checksum, size = _checksum(self._path), _size(log)
        self.mark = mark._replace(checksum=checksum)
        if size == mark.offset and _check(log, size) == mark.check:
            return News([], checksum != mark.checksum)
        # The first line of a log draws the first curve.
        follows = 0 < mark.offset < size <= mark.offset + MOST_BYTES
        lines = LogLines(log, mark.offset)
        records = _records(lines) if follows and _check(log, mark.offset) == mark.check else None
        if records is None:
            self.mark = mark_of(self._path)
            return News([], renew=self.mark != mark)
        self.mark = Mark(lines.end, _check(log, lines.end), checksum)
        return News(
            [figures for record in records if (figures := _figures(record))],
            checksum != mark.checksum,
        )


def _records(lines: LogLines) -> list[dict[str, Any]] | None:
    """The new lines; None if they are too many, or if the page must be rebuilt for them."""
    try:
        records = list(lines)
    except OSError:
        return []
    many = len(records) > MOST_RECORDS
    return None if many or any(record.get("event") == "sample" for record in records) else records


def _figures(record: dict[str, Any]) -> dict[str, Any]:
    """The finite figures of a record that have a curve; empty if there are none."""
    event, step = record.get("event"), record.get("step")
    if event not in ("step", "eval") or type(step) is not int or not 0 < step < 2**53:
        return {}
    figures = {
        key: value
        for key, raw in record.items()
        if (key in OF_STEPS if event == "step" else key.startswith("val."))
        and (value := number(raw)) is not None
    }
    return {"event": event, "step": step, **figures} if figures else {}


def _checksum(path: Path) -> int:
    """A checksum of the other files and of whether a process holds the run."""
    facts = [_facts(path / name) for name in STATE_FILES], is_held(path / "lock")
    return zlib.crc32(repr(facts).encode())


def _facts(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino, facts.st_size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check(path: Path, end: int) -> int:
    """A checksum of what stands before a place; 0 at the beginning."""
    begin = max(0, end - TRACE)
    return zlib.crc32(_read(path, begin, end - begin))


def _read(path: Path, begin: int, count: int) -> bytes:
    """Bytes of a regular file, fewer where there are no more; none where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        return os.pread(handle, count, begin) if is_file else b""
    except OSError:
        return b""
    finally:
        os.close(handle)
