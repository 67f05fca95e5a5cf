"""The memory that a training has to fit in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gradcli.free_memory import free_memory
from gradcli.wording import byte_size


class Room(NamedTuple):
    """The memory that a training has to fit in: whose it is, and how many bytes are free."""

    where: str
    free: Callable[[], int | None]


shown = byte_size
HERE = Room("this machine", free_memory)
