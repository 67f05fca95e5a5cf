"""One writer a run directory: a lock of the kernel's, which a kill cannot leave behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from datetime import datetime
from pathlib import Path

from gradcli.errors import RunError


class Lock:
    """Held from construction to `release`; the loser is told who holds it."""

    def __init__(self, path: Path) -> None:
        try:
            self._handle = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
            )
        except OSError as error:
            raise RunError(f"cannot lock {path.parent}: {error.strerror}") from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _described(self._handle)
            os.close(self._handle)
            raise RunError(f"{path.parent} is in use by {holder}") from error
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, _holder(), 0)
        except OSError as error:
            self.release()
            raise RunError(f"cannot write in {path.parent}: {error.strerror}") from error

    def release(self) -> None:
        """Let the next one in; the file stays empty, since removing it would race."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1


def _holder() -> bytes:
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": platform.node(), "started": started}).encode()


def _described(handle: int) -> str:
    """Who holds the lock; the winner of a race writes that an instant after it has won."""
    for _ in range(50):
        try:
            values = json.loads(os.pread(handle, 4096, 0))
            return f"process {values['pid']} on {values['host']}, started {values['started']}"
        except (ValueError, KeyError, TypeError, OSError):
            time.sleep(0.01)
    return "another process"
