"""Folders of many files known again by what the file system says of each, and hashed once.

What was hashed is kept in `known/` of the cache, a small file for each folder. Losing one costs a
hash and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gradcli.data.files import path_text, regular_size
from gradcli.data.prepared import identity, notes
from gradcli.data.prepared.progress import Progress

YOUNG = 2_000_000_000  # nanoseconds: a later edit could leave the same time on some disks
_MOST = 16  # hashes of one folder: in several orders, or parts of it


def folder_hash(
    folder: Path,
    paths: Sequence[Path],
    hashed: Callable[[Callable[[int], object]], str],
    cache: Path,
) -> str:
    """One hash of the files at `paths` below a folder, in this order, as `hashed` computes it.

    `hashed` gets what it tells how many more files it has read; it is not called where size, times,
    inode and device of each file are those of a hash that is known.
    """
    listing, youngest = listing_of(folder, paths)
    book = notes.note_path(folder, cache, "folder-")
    sha256 = None if identity.verify_data else notes.read(book).get(listing)
    if isinstance(sha256, str):
        return sha256
    with Progress(f"hashing {path_text(folder.name)}", len(paths), "file") as progress:
        sha256 = hashed(progress.advance)
    if time.time_ns() - youngest >= YOUNG:
        notes.write(book, dict([*notes.read(book).items(), (listing, sha256)][-_MOST:]))
    return sha256


def listing_of(folder: Path, paths: Sequence[Path]) -> tuple[str, int]:
    """A hash of what the file system says of each file, and the last time that any was changed."""
    digest, youngest, start = hashlib.sha256(), 0, len(os.fsencode(folder))
    for path in paths:
        name = os.fsencode(path)
        with contextlib.suppress(OSError):
            status = os.stat(name)  # noqa: PTH116 -- paths of bytes, and twice as fast
            if stat.S_ISREG(status.st_mode):
                times = status.st_mtime_ns, status.st_ctime_ns
                facts = *times, status.st_size, status.st_ino, status.st_dev
                digest.update(name[start:] + f"\0{facts}\n".encode())
                youngest = max(youngest, *times)
                continue
        regular_size(path)  # says what is wrong with it
    return digest.hexdigest(), youngest
