"""One writer per run directory: a kernel lock, which ends with its process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import time
from datetime import datetime
from pathlib import Path

from gradcli.errors import RunError


class RunLock:
    """A lock held from construction to `release`; the error names the process that holds it."""

    def __init__(self, path: Path) -> None:
        try:
            self._handle = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
            )
        except OSError as error:
            raise RunError(f"cannot lock {path.parent}: {error.strerror}") from error
        try:
            _take(self._handle)
        except OSError as error:
            holder = _describe_holder(self._handle)
            os.close(self._handle)
            raise RunError(f"{path.parent} is in use by {holder}") from error
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, _holder(), 0)
        except OSError as error:
            self.release()
            raise RunError(f"cannot write in {path.parent}: {error.strerror}") from error

    def release(self) -> None:
        """Release the lock; the file stays, empty, since removing it would race."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1


def _take(handle: int) -> None:
    """Take the lock, or raise; tries again, as another process's `is_held` may have it briefly."""
    for pause in (0.002, 0.01):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(pause)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock; one that cannot be opened counts as held.

    A killed process leaves its name in the file, but the kernel releases the lock.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    try:
        if os.fstat(handle).st_size == 0:  # its holder let go; this way nobody is disturbed
            return False
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    finally:
        os.close(handle)
    return False


def _holder() -> bytes:
    start = datetime.now().astimezone().isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": platform.node(), "started": start}).encode()


def _describe_holder(handle: int) -> str:
    """Describe the process that holds the lock; it writes its name just after taking it."""
    for _ in range(50):
        try:
            values = json.loads(os.pread(handle, 4096, 0))
            return f"process {values['pid']} on {values['host']}, started {values['started']}"
        except (ValueError, KeyError, TypeError, OSError):
            time.sleep(0.01)
    return "another process"
