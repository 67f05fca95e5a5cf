"""Recover log.jsonl for a resume: cut it to the checkpoint, and move a damaged one aside."""

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
from gradcli.wording import join_words, quantity, verb

BEGIN = b'{"event": "'  # of every line that Log.write writes
ASCII = re.compile(rb"[ -~]*")
MAX_NUMBERS = 5  # of lines, in a message


@dataclass
class _Lines:
    """The lines of a log.

    Attributes:
        good: records of steps that the checkpoint holds.
        later: how many records belong to steps after the checkpoint.
        torn: whether the last line was cut off during its write.
        damaged: the numbers of all other lines: not records, or not in the order of the steps.
    """

    good: list[bytes] = field(default_factory=list)
    later: int = 0
    torn: bool = False
    damaged: list[int] = field(default_factory=list)


def recover(path: Path, step: int, evaluated: int) -> list[str]:
    """Cut a torn last line and every record after `step`; returns notes on the changes.

    A resumed run computes those steps again, evaluates again after `evaluated` and tests again at
    its end, so no record occurs twice and steps rise. A log with any other damage is renamed, and
    a new one begins with its good lines.

    Raises:
        OSError: the disk fails.
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
        notes.append(_damage_note(path, lines, _copy_aside(path, data)))
    _renew(path, data, b"".join(lines.good))
    return notes


def _kind(mode: int) -> str:
    """A description of a path that is no regular file; empty for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    names = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a directory"}
    return names.get(stat.S_IFMT(mode), "no regular file")


def _sort(data: bytes, step: int, evaluated: int) -> _Lines:
    """Sort the lines; completes a last one that lacks only its line break."""
    *complete, last = data.split(b"\n")
    if _record(last) is not None:
        complete, last = [*complete, last], b""
    result = _Lines(torn=bool(last) and _is_torn(last))
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
    """The event and the step of a record; None if the line is not one."""
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
    """Whether a line is the beginning of a record; a power cut may leave NUL bytes instead."""
    begins = line.startswith(BEGIN) or BEGIN.startswith(line)
    return begins and ASCII.fullmatch(line) is not None


def _cut_note(path: Path, lines: _Lines, step: int) -> str:
    if not lines.later:
        return f"cut the torn last line of {path.name}"
    count = lines.later + lines.torn
    return f"cut {quantity(count, 'line')} of {path.name} after step {step}"


def _damage_note(path: Path, lines: _Lines, copy: Path) -> str:
    numbers, count = join_words(map(str, lines.damaged), MAX_NUMBERS), len(lines.damaged)
    no_records = f"{verb(count, 'is no record', 'are no records')} of this run"
    return (
        f"warning: {path.name} is damaged: {verb(count, 'line', 'lines')} {numbers} {no_records}; "
        f"the whole file is {copy.name} now, and {path.name} goes on with "
        f"{quantity(len(lines.good), 'good line')}"
    )


def _copy_aside(path: Path, data: bytes) -> Path:
    """Copy the damaged log aside, unless a killed resume already did; returns the copy."""
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
    """Reduce the log to its good lines; the old file stays until the new one is on the disk."""
    if data == good:
        return
    if not data.startswith(good):
        write_file(path, [good])
        return
    with path.open("r+b") as file:
        file.truncate(len(good))
        os.fsync(file.fileno())
