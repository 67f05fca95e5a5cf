"""The memory that this process may still get: of the machine, its container and its own limit."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

from gradcli.wording import quantity

# What the loader says of a library that finds no room, and Python of a thread and of its compiler.
_REFUSALS = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "error return without exception set",
)
# Given back when there is none left, so that this can be said; never touched, so it is only
# addresses until then.
_SPARE = [bytes(4 << 20)]


def free_memory() -> int | None:
    """Bytes; None where the system does not say."""
    limits = [_of_machine(), _of_container(), _of_address_space()]
    return min((count for count in limits if count is not None), default=None)


def is_refusal(error: Exception) -> bool:
    """Whether an exception says that there is no memory left, also for a thread or a library."""
    if isinstance(error, (ImportError, RuntimeError, SystemError)):
        return any(text in str(error).lower() for text in _REFUSALS)
    return isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def used_up() -> str:
    """A sentence for when there is none left."""
    _SPARE.clear()
    free, limit = free_memory(), _limit()
    sentence = "the memory of this machine is used up"
    if limit is not None:
        sentence = (
            "the memory of this process is used up: `ulimit -v` allows "
            f"{quantity(limit, 'byte', form=',')}"
        )
    return sentence if free is None else f"{sentence}; free: {quantity(free, 'byte', form=',')}"


def _of_machine() -> int | None:
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


def _of_container() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        usage = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return max(0, int(limit) - int(usage))
    except (OSError, ValueError):
        return None


def _limit() -> int | None:
    """The bytes of addresses that this process may have, used ones included."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _of_address_space() -> int | None:
    limit = _limit()
    if limit is None:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return limit
