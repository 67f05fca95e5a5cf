"""Hashes of data files, of which some are still to come: large files are read in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

_PATIENCE = 0.1  # seconds between two looks of whoever waits

# Who looks whether mapped files are what they were when they were opened, and raises where they
# are not; asked closely before anything is saved. Nobody, while nothing is mapped.
lookouts: list[Callable[[bool], None]] = []


def look_out(closely: bool = False) -> None:
    """Raise where a mapped file is no longer what it was; asked before a figure is believed."""
    for lookout in lookouts:
        lookout(closely)


class PendingHash:
    """A hash that is still to come, as a thread reads what it is of.

    Attributes:
        fault: what is wrong with that, as far as it was read.
    """

    def __init__(self, title: str, size: int) -> None:
        """`title` and `size` in bytes are for the progress that is shown while waiting."""
        self.fault: Exception | None = None
        self._title, self._size = title, size
        self._bytes = 0  # that were read
        self._sha256: str | None = None
        self._end = threading.Event()

    @property
    def ready(self) -> bool:
        """Whether the end was reached, or a fault was met."""
        return self._end.is_set()

    def result(self) -> str:
        """The hash, once it is there; raises the fault."""
        if not self._end.is_set():
            self._wait()
        if self.fault is not None:
            raise self.fault
        assert self._sha256 is not None, "what was read has a hash"
        return self._sha256

    def _wait(self) -> None:
        from gradcli.data.prepared.progress import Progress  # nobody waits for small data

        with Progress(self._title, self._size, "B") as progress:
            progress.advance(0)  # begins it
            while not self._end.wait(_PATIENCE):
                progress.advance(self._bytes - progress.current)


class Hashes(Mapping[str, str]):
    """Hashes by role; reading one that is still to come waits for it."""

    def __init__(self, values: Mapping[str, str | PendingHash]) -> None:
        self.values_or_later = dict(values)

    def __getitem__(self, role: str) -> str:
        value = self.values_or_later[role]
        return value if isinstance(value, str) else value.result()

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_or_later)

    def __len__(self) -> int:
        return len(self.values_or_later)

    def look(self) -> None:
        """Raise what is known by now to be wrong with a file; waits for nothing."""
        for value in self.values_or_later.values():
            if not isinstance(value, str) and value.fault is not None:
                raise value.fault


def gathered(values: Mapping[str, str | PendingHash]) -> Mapping[str, str]:
    """Hashes by role, of which some may come later."""
    there = {role: value for role, value in values.items() if isinstance(value, str)}
    return there if len(there) == len(values) else Hashes(values)


def so_far(hashes: Mapping[str, str]) -> dict[str, str | None]:
    """The finished hashes; None for those still to come."""
    if not isinstance(hashes, Hashes):
        return dict(hashes)
    values = hashes.values_or_later
    return {role: hashes[role] if _is_there(value) else None for role, value in values.items()}


def _is_there(value: str | PendingHash) -> bool:
    return isinstance(value, str) or (value.ready and value.fault is None)


def merged(hashes: Mapping[str, str], more: Mapping[str, str]) -> Mapping[str, str]:
    """The hashes with more of them; waits for none."""
    if not isinstance(hashes, Hashes):
        return {**hashes, **more}
    return Hashes({**hashes.values_or_later, **more})
