"""One process at a time prepares a set: a lock of the kernel's, which dies with its process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from gradcli.data.prepared import progress

# Of this process; a child that it forks closes them, lest the lock live as long as the child.
_handles: set[int] = set()
_UNKNOWN = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of disks that know no locks


class PreparationLock:
    """Held from construction to `release`; the second process waits, and says so.

    Args:
        waits: what is waited for; None where one does not wait, and `is_mine` says how it went.
    """

    def __init__(self, path: Path, waits: str | None) -> None:
        self._path = path
        self._handle = -1
        self.is_mine = False
        self.is_safe = True  # nobody else has it too, as on a disk that knows no locks
        self._spoke = False
        while not self.is_mine:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _handles.add(self._handle)
            if not self._take(waits):
                self._close()
                return
            # Its holder removes the file when it lets go: then this is not the one that others see.
            self.is_mine = self._is_at_path()
            if not self.is_mine:
                self._close()

    def _take(self, waits: str | None) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _UNKNOWN:  # each prepares its own folder; one is renamed
                self.is_safe = False
                return True
            if waits is None:
                return False
            if not self._spoke:
                progress.teller(f"another process prepares {waits}; waiting for it")
            self._spoke = True
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        return True

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._handle), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the next one in."""
        if self.is_mine:
            with contextlib.suppress(OSError):
                self._path.unlink()
        self.is_mine = False
        self._close()

    def __enter__(self) -> PreparationLock:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    def _close(self) -> None:
        if self._handle >= 0:
            _handles.discard(self._handle)
            os.close(self._handle)
            self._handle = -1


def _close_in_child() -> None:
    for handle in _handles:
        with contextlib.suppress(OSError):
            os.close(handle)
    _handles.clear()


os.register_at_fork(after_in_child=_close_in_child)
