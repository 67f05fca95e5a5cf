"""log.jsonl, the single source of truth on a run: one strict JSON object a line."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from gradcli.errors import RunError
from gradcli.train.atomic import sync_directory
from gradcli.wording import quantity


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
        self._name_synced = False  # whether the directory entry is on the disk
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._handle = os.open(path, flags, 0o644)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error

    def write(self, record: dict[str, object]) -> None:
        """Append one line."""
        line = (dump(record) + "\n").encode()
        try:
            count = os.write(self._handle, line)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from error
        if count != len(line):
            raise RunError(
                f"cannot write {self.path}: {count} of {quantity(len(line), 'byte')}; disk full?"
            )

    def flush(self) -> None:
        """Make the lines so far last through a power cut, and the file's name with them."""
        try:
            os.fsync(self._handle)
            if not self._name_synced:
                sync_directory(self.path.parent)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from error
        self._name_synced = True

    def close(self) -> None:
        """Close the file; a closed log stays closed."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
