"""The memory that a training has to fit in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gradcli.free_memory import free_memory


class Room(NamedTuple):
    """The memory that a training has to fit in: whose it is, and how many bytes are free.

    `process` bytes of that are Python's own, where it is not at work there already.
    """

    where: str
    free: Callable[[], int | None]
    process: int = 0
    device: str = "cpu"


PROCESS = 64_000_000  # Python, its modules and the engine's libraries, in a training


def allowance(size: int, device: str = "cpu") -> Room:
    """So many bytes: for the whole process, or on a GPU."""
    return Room("--memory", lambda: size, PROCESS if device == "cpu" else 0, device)


HERE = Room("this machine", free_memory)
