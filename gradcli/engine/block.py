"""Blocks: what holds inside a `with` or a decorated function, and what held before."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from threading import get_ident
from typing import Any, ClassVar


class Block(ContextDecorator):
    """A `with` block that may be entered again inside itself, and by several threads at once.

    As a decorator it is one object for all calls of its function, whichever thread makes them:
    what held before is put down for each thread by itself.

    Attributes:
        variable: what holds.
        mode: its value inside the block.
    """

    variable: ClassVar[ContextVar[bool]]

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: dict[int, list[Any]] = {}

    def before(self) -> list[Any]:
        """What held before the blocks in which this thread is, the innermost last."""
        return self._before.setdefault(get_ident(), [])

    def __enter__(self) -> None:
        before = self._before.get(get_ident())  # backward enters one: a call less
        (self.before() if before is None else before).append(self.variable.get())
        self.variable.set(self.mode)

    def __exit__(self, *_: object) -> None:
        self.variable.set(self._before[get_ident()].pop())
