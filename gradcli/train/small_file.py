"""Small files of runs and of users, in whose place anybody may have put something else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from gradcli.wording import quantity

MOST_BYTES = 16 << 20


def read_small(
    file: Path,
    most: int = MOST_BYTES,
    *,
    follow: bool = True,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """The bytes of a regular file; a pipe is not waited for, and a huge one not read.

    `follow` links or not; `check` raises for a file that is not to be believed.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than `most` bytes.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(file, flags), "rb") as stream:  # noqa: PTH123 -- a handle is no path
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no regular file")
        if check is not None:
            check(status)
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(f"it has more than {quantity(most, 'byte')}")
    return data
