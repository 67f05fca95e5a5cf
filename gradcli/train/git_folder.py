"""The commit of a checkout, read from the files in .git without starting a process.

The formats are git's own: gitrepository-layout(5) and gitformat-index(5), versions 2 and 3. If a
file cannot be read the commit is unknown; that is no error.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gradcli.train.small_file import read_small

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_STAT = struct.Struct(">10I")  # of an entry: times, device, inode, mode, owners, size
_MODE, _SIZE, _SECONDS, _NANOSECONDS = 6, 9, 2, 3
_REGULAR = 0o100000
_EXTENDED, _LENGTH = 0x4000, 0x0FFF  # of an entry's flags


def head(folder: Path) -> str | None:
    """The commit that is checked out in a folder, or in the nearest one above it."""
    try:
        here = folder.absolute()  # fails where the current folder was removed
        root = next((path for path in (here, *here.parents) if (path / ".git").exists()), None)
        return _head(_inside(root)) if root else None
    except (OSError, ValueError):
        return None


def commit(root: Path) -> str | None:
    """The commit of the checkout in `root`, with "-dirty" if files differ from the index.

    It does not notice staged changes: to compare them it would have to read packed objects.
    """
    try:
        inside = _inside(root)
        name = _head(inside)
        return f"{name}-dirty" if name and _is_dirty(root, inside / "index", len(name)) else name
    except (OSError, ValueError, struct.error):
        return None


def _text(file: Path) -> str:
    return os.fsdecode(read_small(file))


def _inside(root: Path) -> Path:
    """The folder of a checkout's own files; in a further worktree .git is a file that names it."""
    git = root / ".git"
    return git if git.is_dir() else root / _text(git).removeprefix("gitdir:").strip()


def _head(inside: Path) -> str | None:
    name = _text(inside / "HEAD").strip()
    if not name.startswith("ref: "):
        return name if _HASH.fullmatch(name) else None
    name = name.removeprefix("ref: ")
    shared = inside / "commondir"  # where a further worktree finds the branches
    folders = (inside, inside / _text(shared).strip()) if shared.exists() else (inside,)
    hashes = (text for folder in folders for text in _branch(folder, name))
    return next(filter(_HASH.fullmatch, hashes), None)


def _branch(folder: Path, name: str) -> Iterator[str]:
    """The hashes of a branch in a folder: in a file of its own, or in packed-refs."""
    if (folder / name).is_file():
        yield _text(folder / name).strip()
    packed = folder / "packed-refs"
    if packed.is_file():
        lines = _text(packed).splitlines()
        yield from (line.partition(" ")[0] for line in lines if line.endswith(f" {name}"))


class _Entry(NamedTuple):
    """A file of the index: its name, its stat values, and the hash of its content."""

    name: str
    stat: tuple[int, ...]
    content: bytes


def _is_dirty(root: Path, index: Path, digits: int) -> bool:
    """Whether any file differs from the index."""
    index_mtime, entries = index.stat().st_mtime_ns, _entries(index, digits)
    return any(_differs(f"{root}/{entry.name}", entry, index_mtime) for entry in entries)


def _entries(index: Path, digits: int) -> Iterator[_Entry]:
    data = index.read_bytes()
    mark, version, count = struct.unpack_from(">4s2I", data)
    if mark != b"DIRC" or version not in (2, 3):
        raise ValueError("an index of another version")
    start = 12
    for _ in range(count):
        at = start + _STAT.size + digits // 2
        (flags,) = struct.unpack_from(">H", data, at)
        name = at + (4 if flags & _EXTENDED else 2)
        end = data.index(b"\0", name + (flags & _LENGTH))
        content = data[start + _STAT.size : at]
        yield _Entry(os.fsdecode(data[name:end]), _STAT.unpack_from(data, start), content)
        start += (end - start + 8) // 8 * 8


def _differs(path: str, entry: _Entry, index_mtime: int) -> bool:
    """Whether a regular file has changed; reads it if its times leave that open."""
    if entry.stat[_MODE] & 0o170000 != _REGULAR:
        return False
    try:
        now = os.stat(path)  # noqa: PTH116 -- of a thousand files, at each start
    except OSError:
        return True
    if now.st_size != entry.stat[_SIZE]:
        return True
    mtime = entry.stat[_SECONDS] * 10**9 + entry.stat[_NANOSECONDS]
    if now.st_mtime_ns == mtime < index_mtime:  # a file as old as the index may have changed later
        return False
    data = Path(path).read_bytes()
    kind = hashlib.sha1 if len(entry.content) == 20 else hashlib.sha256
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() != entry.content
