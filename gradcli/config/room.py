"""The memory that a training has to fit in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """The memory that a training has to fit in: whose it is, and how many bytes are free."""

    where: str
    free: Callable[[], int | None]


def shown(count: int) -> str:
    """A number of bytes for messages, such as 1.3 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def available_bytes() -> int | None:
    """Memory that a new process could still get; None where the system does not say."""
    limits = [_meminfo(), _cgroup(), _address_space()]
    counts = [count for count in limits if count is not None]
    return min(counts, default=None)


HERE = Room("this machine", available_bytes)


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return None
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _cgroup() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None


def _address_space() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
