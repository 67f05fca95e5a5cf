"""Write files atomically: after a crash a file is the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

TEMPORARY = re.compile(r"\.gradcli-[0-9a-f]{16}\.tmp")


def write_file(
    path: Path,
    parts: Iterable[bytes | memoryview],
    verify: Callable[[Path], None] | None = None,
    *,
    flush: bool = True,
) -> None:
    """Write aside in the same directory, fsync, verify, rename, fsync the directory.

    If any step fails, `path` stays as it was and no other file is left. Without `flush` that holds
    for a killed process, but not for a power cut.
    """
    aside = path.with_name(f".gradcli-{secrets.token_hex(8)}.tmp")
    try:
        with aside.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if verify is not None:
            verify(aside)
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # a resume removes it; the reason matters more
            aside.unlink()
        raise
    if flush:
        sync_directory(path.parent)


def write_text(path: Path, text: str, *, flush: bool = True) -> None:
    """A small text file, UTF-8, written whole or not at all."""
    write_file(path, [text.encode("utf-8")], flush=flush)


def sync_directory(path: Path) -> None:
    """Make the names in a directory last through a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_stale(directory: Path) -> list[str]:
    """Remove the temporary files of a killed writer, by our own pattern; returns a note on each."""
    notes = []
    for entry in sorted(directory.iterdir()):
        if not TEMPORARY.fullmatch(entry.name):
            continue
        try:
            entry.unlink(missing_ok=True)
        except OSError as error:
            notes.append(f"warning: cannot remove {entry.name} of a killed run: {error.strerror}")
        else:
            notes.append(f"removed {entry.name}, left by a killed run")
    return notes
