"""All prepared sets of a cache: what is there, whether it is whole, and removing it.

Only files named like a set, its lock or a half-made set are ever read or removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from gradcli.data.files import path_text
from gradcli.data.prepared import notes
from gradcli.data.prepared.identity import Advance
from gradcli.data.prepared.lock import PreparationLock
from gradcli.data.prepared.sets import FACTS, Damage, OtherFormat, open_set, read_facts
from gradcli.dataclass import dataclass
from gradcli.errors import RunError

SET = re.compile(r"[a-z0-9_]+-[0-9a-f]{16}")
ASIDE = re.compile(rf"\.({SET.pattern})\.[0-9]+-[0-9a-f]{{8}}(-old)?")
NOTE = re.compile(r"\.[0-9a-f]{16}\.tmp")
_OLD = 3600  # seconds, in which every process that lives has written its note
READY, DAMAGED, OTHER, BUSY, HALF = "ready", "damaged", "other version", "in work", "half made"


@dataclass(frozen=True)
class Shelved:
    """A set in a cache, or what a killed process left of one.

    Attributes:
        state: one of the five above.
        reason: what is damaged or other about it.
        size: bytes on the disk.
        last_use: when a training last opened it.
        files: its source files as they were called.
    """

    path: Path
    state: str
    size: int
    last_use: datetime
    files: tuple[str, ...] = ()
    reason: str = ""


def sets_in(cache: Path) -> list[Shelved]:
    """What lies in a cache, by name; a folder that is not there holds nothing."""
    try:
        names = sorted(
            entry.name for entry in os.scandir(cache) if entry.is_dir(follow_symlinks=False)
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(
            f"{path_text(cache)} cannot be read: {error.strerror}", code="E708"
        ) from None
    return [
        _looked_at(cache / name) for name in names if SET.fullmatch(name) or ASIDE.fullmatch(name)
    ]


def _looked_at(path: Path) -> Shelved:
    state, reason, files = _state(path)
    return Shelved(path, state, _size(path), _last_use(path), files, reason)


def _state(path: Path) -> tuple[str, str, tuple[str, ...]]:
    if ASIDE.fullmatch(path.name):
        return (BUSY if is_locked(path) else HALF), "", ()
    try:
        facts = read_facts(path) or {}
    except OtherFormat as other:
        return OTHER, str(other), ()
    except Damage as damage:
        return DAMAGED, str(damage), ()
    files = facts.get("files")
    names = files.values() if isinstance(files, dict) else ()
    return READY, "", tuple(dict.fromkeys(map(str, names)))


def _size(path: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # somebody removes it
        for entry in os.scandir(path):
            total += entry.stat(follow_symlinks=False).st_size
    return total


def _last_use(path: Path) -> datetime:
    for candidate in (path / FACTS, path):
        with contextlib.suppress(OSError, ValueError, OverflowError):  # a time may be anything
            return datetime.fromtimestamp(candidate.stat().st_mtime, UTC)
    return datetime.now(UTC)


def _lock_of(path: Path) -> Path:
    match = ASIDE.fullmatch(path.name)
    return path.with_name(f"{match[1] if match else path.name}.lock")


def is_locked(path: Path) -> bool:
    """Whether a process prepares this set now."""
    lock_path = _lock_of(path)
    if not lock_path.exists():
        return False
    try:
        with PreparationLock(lock_path, None) as lock:
            return not lock.is_mine
    except OSError:
        return False


def verified(entry: Shelved, advance: Advance | None = None) -> str:
    """Why a set is damaged, once every byte of it was read; empty where it is whole."""
    try:
        open_set(entry.path, verify=True, advance=advance)
    except Damage as damage:
        return str(damage)
    return ""


def remove(entry: Shelved) -> bool:
    """Remove a set; False where a process prepares it now.

    Raises:
        RunError: it cannot be removed.
    """
    try:
        with PreparationLock(_lock_of(entry.path), None) as lock:
            if lock.is_mine:
                _remove(entry.path)
            return lock.is_mine
    except OSError as error:
        raise RunError(
            f"{path_text(entry.path)} cannot be removed: {error.strerror}", code="E708"
        ) from None


def _remove(path: Path) -> None:
    """Remove the facts first: without them the rest is no set."""
    with contextlib.suppress(FileNotFoundError):
        (path / FACTS).unlink()
    with contextlib.suppress(FileNotFoundError):
        notes.note_path(path, path.parent).unlink()
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def remove_loose(cache: Path) -> None:
    """Remove what a killed process left: locks that nobody holds, and notes half made."""
    for path in cache.glob("*.lock"):
        if SET.fullmatch(path.stem):
            is_locked(path.with_suffix(""))  # a lock that nobody holds goes when one lets go of it
    for path in cache.glob(f"{notes.FOLDER}/.*.tmp"):
        with contextlib.suppress(OSError):
            if NOTE.fullmatch(path.name) and time.time() - path.stat().st_mtime > _OLD:
                path.unlink()
