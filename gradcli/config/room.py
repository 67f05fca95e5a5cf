"""The memory that a training has to fit in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gradcli.free_memory import free_memory
from gradcli.wording import quantity


class Room(NamedTuple):
    """The memory that a training has to fit in: whose it is, and how many bytes are free."""

    where: str
    free: Callable[[], int | None]


def shown(count: int) -> str:
    """A number of bytes for messages, such as 1.3 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return quantity(count, "byte")


HERE = Room("this machine", free_memory)
