"""Read small files of runs and users safely, whatever may lie in their place."""

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
    """The bytes of a regular file; never waits for a pipe, nor reads a huge file.

    It may `follow` links; `check` raises for a file that cannot be trusted.

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
