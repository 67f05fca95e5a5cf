"""log.jsonl, the single source of truth on a run: one strict JSON object a line."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from gradcli.errors import RunError


def strict(record: dict[str, object]) -> dict[str, Any]:
    """`record` with null for NaN and infinity, whose names go into `nonfinite`."""
    odd = {
        key: str(value)
        for key, value in record.items()
        if isinstance(value, float) and not math.isfinite(value)
    }
    if not odd:
        return record
    return {**record, **dict.fromkeys(odd), "nonfinite": odd}


def dump(record: dict[str, object]) -> str:
    """One record as strict JSON."""
    return json.dumps(strict(record), allow_nan=False)


class Log:
    """Appends records; every line is written whole in one call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._handle = os.open(path, flags, 0o644)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error

    def write(self, record: dict[str, object]) -> None:
        """Append one line."""
        line = (dump(record) + "\n").encode()
        try:
            written = os.write(self._handle, line)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from error
        if written != len(line):
            raise RunError(f"cannot write {self.path}: {written} of {len(line)} bytes; disk full?")

    def close(self) -> None:
        """Close the file; a closed log stays closed."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def cut(path: Path, step: int, evaluated: int) -> int:
    """Cut a torn last line and every record after `step`; gives the number of lines removed.

    A resumed run makes those steps again, evaluates again after `evaluated` and tests again at
    its end, so that no record comes twice and steps rise.
    """
    if path.is_symlink() or not path.is_file():
        return 0
    data = path.read_bytes()
    good = 0
    for line in data.splitlines(keepends=True):
        if not _belongs(line, step, evaluated):
            break
        good += len(line)
    if good < len(data):
        os.truncate(path, good)
    return len(data[good:].splitlines())


def _belongs(line: bytes, step: int, evaluated: int) -> bool:
    record = _parsed(line)
    if record is None or type(record.get("step")) is not int:
        return False
    last = {"eval": evaluated, "test": -1}.get(str(record.get("event")), step)
    return bool(record["step"] <= min(step, last))


def _parsed(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
