"""Whether kernel calls are being recorded, and by whom. The recorder itself is program/record.py.

Only what Python does between two calls must be told to it: which memory is new, which numbers
Python keeps up, and what it took for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from gradcli.engine.presence import Presence


class Varying(Protocol):
    """Numbers in memory that Python keeps up from step to step: learning rates, random states."""

    def varying(self) -> Any:
        """The Array that recorded calls read."""
        ...

    def rows(self, steps: int) -> bytes | None:
        """Write what the next `steps` steps read; where they differ, give a row for each."""
        ...

    def undo(self) -> None:
        """The recorded step is made again: Python's numbers are what they were before it."""
        ...


class Recorder(Protocol):
    """What the engine tells whoever records."""

    def call(
        self, kernel: str, arrays: Sequence[Any], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """A kernel is about to run."""

    def outside(
        self,
        function: Callable[..., object],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        queues: bool = False,
    ) -> None:
        """A function of Python is about to read and write these Arrays, as every step does."""

    def returned(self, outputs: Sequence[Any]) -> None:
        """It has written these."""

    def created(self, storage: Any) -> None:
        """Fresh memory, to be written by kernels."""

    def constant(self, storage: Any) -> None:
        """Fresh memory that Python has filled."""

    def keeps(self, storage: Any) -> bool:
        """Whether the recorder itself refers to this memory."""

    def reading(self) -> None:
        """Python is about to look at values; raises, because a replay would not look again."""

    def assume(self, owner: object, attribute: str) -> None:
        """Python decided by this attribute; with another value the calls would be others."""

    def note_read(self, owner: object, name: str, fact: Callable[[Any, str], Any]) -> None:
        """Python has read an attribute; `fact(owner, name)` is what it stands for.

        Whoever has such attributes calls `invalidate` when one changes, so that they need not be
        compared each time.
        """

    def wrote(self, owner: object, name: str) -> None:
        """Python has set an attribute: what the step itself keeps up is no fact."""

    def sampling(self, on: bool) -> None:
        """The step begins, or ends, to gather its samples."""

    def arrived(self, leaf: Any) -> None:
        """A gradient is about to be put into a leaf's `grad`."""

    def varies(self, owner: object, make: Callable[[], Varying]) -> Any:
        """The owner's numbers that Python writes before each step, made at the first mention."""


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_recorders = Presence()


# Whoever records the calls of this thread, if anyone does; a call asks several times.
current: Callable[[], Recorder | None] = _current.get


def reading() -> None:
    """Python is about to look at values, or to let others look: whoever records may refuse."""
    recorder = current()
    if recorder is not None:
        recorder.reading()


@contextmanager
def sampling() -> Iterator[None]:
    """What is gathered inside a `with` block are samples: programs time how long that takes."""
    recorder = current()
    if recorder is None:
        yield
        return
    recorder.sampling(True)
    try:
        yield
    finally:
        recorder.sampling(False)


@contextmanager
def to(recorder: Recorder | None) -> Iterator[None]:
    """Record to this one inside a `with` block; to none with None."""
    token = _current.set(recorder)
    _recorders.enter()
    try:
        yield
    finally:
        _recorders.leave()
        _current.reset(token)


# -- what recordings look at -----------------------------------------------------------------------

INHERITED: Any = object()  # what an attribute stands for that its owner has from its class


class Members(tuple[Any, ...]):
    """A fact that holds tensors or modules: once they are replaced, they do not come back."""

    __slots__ = ()


_state = [object()]
# Who tells recorders what Python looks at does so only while somebody records.
watch = _recorders.watch


def invalidate() -> None:
    """An attribute that a recording may have read has changed: its facts are compared again."""
    _state[0] = object()


def state() -> object:
    """The same object as long as nothing has changed."""
    return _state[0]
