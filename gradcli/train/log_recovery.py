"""log.jsonl as a resume needs it: cut to the checkpoint; a damaged one is moved aside whole."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import NoReturn

from gradcli.dataclass import dataclass
from gradcli.train.atomic import sync_directory, write_file
from gradcli.wording import listed, quantity, verb

BEGIN = b'{"event": "'  # of every line that Log.write writes
ASCII = re.compile(rb"[ -~]*")
SHOWN = 5


@dataclass
class _Sorted:
    """The lines of a log.

    Attributes:
        good: records of steps that the checkpoint holds.
        later: how many records are of steps that are made again.
        torn: whether the last line was cut off as it was written.
        damaged: the numbers of all other lines: no records, or not in the order of the steps.
    """

    good: list[bytes] = field(default_factory=list)
    later: int = 0
    torn: bool = False
    damaged: list[int] = field(default_factory=list)


def recover(path: Path, step: int, evaluated: int) -> list[str]:
    """Cut a torn last line and every record after `step`; gives notes on what was done.

    A resumed run makes those steps again, evaluates again after `evaluated` and tests again at
    its end, so that no record comes twice and steps rise. A log with any other damage is kept
    under another name, and its good lines go on in a new one.

    Raises:
        OSError: the disk refuses.
    """
    if not os.path.lexists(path):
        return []
    obstacle = _kind(path.lstat().st_mode)
    try:
        data = b"" if obstacle else path.read_bytes()
    except OSError as error:
        obstacle = f"unreadable: {error.strerror}"
    if obstacle:
        copy = _free_name(path)
        path.rename(copy)
        sync_directory(path.parent)
        return [f"warning: {path.name} is {obstacle}; it is {copy.name} now, and a new log begins"]
    lines = _sort(data, step, evaluated)
    notes = [_cut_note(path, lines, step)] if lines.later or lines.torn else []
    if lines.damaged:
        notes.append(_damage_note(path, lines, _kept_aside(path, data)))
    _renew(path, data, b"".join(lines.good))
    return notes


def _kind(mode: int) -> str:
    """What a path is that is no regular file."""
    if stat.S_ISREG(mode):
        return ""
    names = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a directory"}
    return names.get(stat.S_IFMT(mode), "no regular file")


def _sort(data: bytes, step: int, evaluated: int) -> _Sorted:
    """Each line where it belongs; a last one that lacks only its line break gets one."""
    *complete, last = data.split(b"\n")
    if _record(last) is not None:
        complete, last = [*complete, last], b""
    result = _Sorted(torn=bool(last) and _is_torn(last))
    beyond: list[int] = []  # lines of steps after `step`, wrong if one before it follows
    before, newest = set(), 0
    limits = {"eval": evaluated, "sample": evaluated, "test": -1}
    for number, line in enumerate(complete, 1):
        record = _record(line)
        event, at = record or ("", -1)
        if record is not None and at > min(step, limits.get(event, step)):
            result.later += 1
            beyond += [number] if at > step else []
        elif record is None or at < newest or record in before:
            result.damaged.append(number)
        else:
            result.damaged += beyond
            result.later -= len(beyond)
            result.good.append(line + b"\n")
            beyond, newest = [], at
            before.add(record)
    if last and not result.torn:
        result.damaged.append(len(complete) + 1)
    result.damaged.sort()
    return result


def _record(line: bytes) -> tuple[str, int] | None:
    """The event and the step of a record; None where a line is none."""
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    record = record if isinstance(record, dict) else {}
    event, step = record.get("event"), record.get("step")
    return (event, step) if isinstance(event, str) and type(step) is int and step >= 0 else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _is_torn(line: bytes) -> bool:
    """Whether that is how a record begins; a power cut leaves NUL bytes and other things."""
    begins = line.startswith(BEGIN) or BEGIN.startswith(line)
    return begins and ASCII.fullmatch(line) is not None


def _cut_note(path: Path, lines: _Sorted, step: int) -> str:
    if not lines.later:
        return f"cut the torn last line of {path.name}"
    count = lines.later + lines.torn
    return f"cut {quantity(count, 'line')} of {path.name} after step {step}"


def _damage_note(path: Path, lines: _Sorted, copy: Path) -> str:
    numbers, count = listed(map(str, lines.damaged), SHOWN), len(lines.damaged)
    no_records = f"{verb(count, 'is no record', 'are no records')} of this run"
    return (
        f"warning: {path.name} is damaged: {verb(count, 'line', 'lines')} {numbers} {no_records}; "
        f"the whole file is {copy.name} now, and {path.name} goes on with "
        f"{quantity(len(lines.good), 'good line')}"
    )


def _kept_aside(path: Path, data: bytes) -> Path:
    """The file that holds the damaged log; a resume that was killed may have written it."""
    for copy in _copies(path):
        if _kind(copy.lstat().st_mode) == "" and copy.read_bytes() == data:
            return copy
    copy = _free_name(path)
    write_file(copy, [data])
    return copy


def _copies(path: Path) -> Iterable[Path]:
    return path.parent.glob(f"{path.name}.damaged-*")


def _free_name(path: Path) -> Path:
    """`log.jsonl.damaged-1`, or the next number that is free."""
    number = 1
    while os.path.lexists(copy := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    return copy


def _renew(path: Path, data: bytes, good: bytes) -> None:
    """The good lines alone, on the disk; the old file stands until the new one does."""
    if data == good:
        return
    if not data.startswith(good):
        write_file(path, [good])
        return
    with path.open("r+b") as file:
        file.truncate(len(good))
        os.fsync(file.fileno())
