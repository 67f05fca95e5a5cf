"""The list of own code that this user's trainings ran: a file of hashes in the home folder.

It decides only whether a file of code is run without being asked for, never what a run computes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradcli.train.atomic import remove_stale, write_file
from gradcli.train.small_file import read_small

LINE = re.compile(rb"[0-9a-f]{64}  [!-~]+")  # SHA-256 and the name of the file
MOST_BYTES = 16 << 20
SECONDS = 5.0  # to wait for another process; a write takes milliseconds


def list_path() -> Path | None:
    """`$XDG_STATE_HOME/gradcli/trusted`; None where no home folder is known."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # is passed over, says the standard of these folders
        try:
            home = Path.home()
        except RuntimeError:  # no HOME, and nobody of this number in the table of users
            return None
        if not home.is_absolute() or home == Path("/"):  # of users that are services
            return None
        state = home / ".local" / "state"
    return state / "gradcli" / "trusted"


def hashes(file: Path) -> frozenset[str]:
    """The hashes in the list; none where it does not exist.

    Raises:
        OSError: it cannot be read, is damaged, or others may write in it.
    """
    return frozenset(line[:64].decode() for line in _contents(file).splitlines())


def add(file: Path, sha256: str, name: str) -> bool:
    """Whether the hash is new, and has a line now; other processes may add theirs meanwhile.

    Raises:
        OSError: it cannot be read or written, is damaged, or others may write in it.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(file.parent.stat())
    with _lock(file.with_name("lock")):
        remove_stale(file.parent)
        before = _contents(file)
        if any(line.startswith(sha256.encode()) for line in before.splitlines()):
            return False
        word = re.sub(r"[^!-~]", "_", name)
        line = f"{sha256}  {word}\n".encode()
        write_file(file, [before, line], verify=lambda aside: aside.chmod(0o600))
    return True


def _contents(file: Path) -> bytes:
    try:
        data = read_small(file, MOST_BYTES, follow=False, check=_check_private)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno == errno.ELOOP:  # "Too many levels of symbolic links" is no help
            raise OSError("it is a symbolic link") from error
        raise
    _check_private(file.parent.stat())
    _check_lines(data)
    return data


def _check_private(status: os.stat_result) -> None:
    """Raise if somebody else could have written here."""
    if status.st_uid != os.geteuid():
        raise OSError(f"it belongs to user {status.st_uid}, not to you")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"others may write in it (mode {stat.S_IMODE(status.st_mode):03o})")


def _check_lines(data: bytes) -> None:
    if data and not data.endswith(b"\n"):
        raise OSError("its last line is torn")
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        if not LINE.fullmatch(line):
            raise OSError(f"its line {number} is no SHA-256 with a name")


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Alone with the list; a kill lets go of it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(file, flags, 0o600)
    try:
        _wait(handle)
        yield
    finally:
        os.close(handle)


def _wait(handle: int) -> None:
    end = time.monotonic() + SECONDS
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError("another process keeps it locked") from None
            time.sleep(0.01)
