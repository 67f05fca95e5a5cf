"""Files known again by what the file system says of them, so that they are hashed once.

What was hashed is kept in `known/` of the cache, a small file for each folder of data. Losing one
costs a hash and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from gradcli.data.files import check_sums, path_text, reading, regular_size
from gradcli.data.prepared import notes
from gradcli.data.prepared.cache import cache_folder
from gradcli.dataclass import dataclass
from gradcli.errors import DataError, RunError

verify_data = False  # `--verify-data`: hash always
BLOCK = 1 << 20
_HASHED = 8 * BLOCK  # at once
YOUNG = 2_000_000_000  # nanoseconds: a later edit could leave the same times on some disks
_OFTEN = 1.0  # seconds between two times that hashes are kept, of many small files
Advance = Callable[[int], object]


@dataclass(frozen=True)
class FileIdentity:
    """What tells a file from an edited one without reading it.

    Attributes:
        ctime_ns: of the last change of anything, even of rights; not compared by `==`.
    """

    size: int
    mtime_ns: int
    inode: int
    device: int
    ctime_ns: int = field(default=0, compare=False)

    @classmethod
    def of(cls, path: Path | str) -> FileIdentity:
        """The identity of the file at a path."""
        regular_size(Path(path))
        return cls.of_status(Path(path).stat())

    @classmethod
    def of_status(cls, stat: os.stat_result) -> FileIdentity:
        """The identity in what `stat` says."""
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev, stat.st_ctime_ns)

    def as_list(self) -> list[int]:
        """As JSON has it, in the order of the fields."""
        return [self.size, self.mtime_ns, self.inode, self.device, self.ctime_ns]

    def untouched(self, earlier: FileIdentity) -> bool:
        """Whether the file is still the same, down to the time of its last change of status."""
        return self == earlier and self.ctime_ns == earlier.ctime_ns

    @property
    def is_young(self) -> bool:
        """Whether the file was changed so lately that it could be again with the same times."""
        return time.time_ns() - max(self.mtime_ns, self.ctime_ns) < YOUNG


def trust_identities() -> None:
    """Hash only what changed, as without `--verify-data`."""
    global verify_data
    verify_data = False


# The identity that each file had when its hash was asked for, and which were young then.
when_hashed: dict[Path, FileIdentity] = {}
_young: set[Path] = set()


def identity_of_hash(path: Path) -> FileIdentity:
    """The identity of a file when it was hashed: what is read of it later must be the same."""
    return when_hashed.get(_absolute(path)) or FileIdentity.of(path)


def edited_since(path: Path, sha256: str) -> bool:
    """Whether a file is no longer what was hashed; read once more where its times do not tell."""
    then, now = when_hashed.get(_absolute(path)), FileIdentity.of(path)
    if then is not None and now != then:
        return True
    is_known = then is not None and now.untouched(then) and _absolute(path) not in _young
    return not is_known and hashed(path)[0] != sha256


def _absolute(path: Path | str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 -- keeps links


def sha256_of(path: Path | str, progress: Advance | None = None, cache: Path | None = None) -> str:
    """The hash of a file, compared with the SHA256SUMS beside it.

    The bytes that are read are reported to `progress`; a file that is known is not read.
    """
    return sha256_of_all([path], progress, cache)[Path(path)]


def sha256_of_all(
    paths: Iterable[Path | str], progress: Advance | None = None, cache: Path | None = None
) -> dict[Path, str]:
    """The hash of each file by its path as given; those of one folder are looked up together."""
    books: dict[Path, Book] = {}
    hashes: dict[Path, str] = {}
    try:
        for path in map(Path, paths):
            absolute = _absolute(path)
            if absolute.parent not in books:
                books[absolute.parent] = Book(absolute.parent, cache)
            hashes[path] = books[absolute.parent].sha256(absolute, progress)
            check_sums(path, hashes[path])
    finally:
        for book in books.values():
            book.save()
    return hashes


class Book:
    """The hashes of the files in one folder, with the identities that they had.

    Attributes:
        entries: identity, hash, and the checks that its numbers passed, by the name of the file.
    """

    def __init__(self, folder: Path, cache: Path | None = None, *, verify: bool = False) -> None:
        self.verify = verify or verify_data
        self._path: Path | None = None
        self._dirty = False
        self.entries: dict[str, Any] = {}
        with contextlib.suppress(RunError):  # without a home folder there are no notes
            self._path = notes.note_path(folder, cache or cache_folder(None))
            self.entries = notes.read(self._path)

    def sha256(self, path: Path, progress: Advance | None = None) -> str:
        """The hash of a file of this folder."""
        now = FileIdentity.of(path)
        earlier = None if self.verify else _hash_in(self.entries.get(path.name), now)
        _young.discard(path)
        if earlier is not None:
            when_hashed[path] = now
            return earlier
        sha256, now = hashed(path, progress)
        when_hashed[path] = now
        if now.is_young:
            _young.add(path)
        else:
            self.enter(path.name, {"identity": now.as_list(), "sha256": sha256})
        return sha256

    def enter(self, name: str, entry: dict[str, Any]) -> None:
        """Note something of a file of this folder."""
        self.entries[name] = entry
        self._dirty = True

    def save(self) -> None:
        """Remember what is new; a cache that cannot be written costs the hash next time."""
        if self._path is not None and self._dirty:
            notes.write(self._path, self.entries)


_remembering = threading.Lock()


def recall(
    path: Path, now: FileIdentity, checks: Iterable[str], cache: Path | None = None
) -> str | None:
    """The hash of a file that is the one that was hashed, and whose numbers passed these checks."""
    absolute = _absolute(path)
    entry = Book(absolute.parent, cache).entries.get(absolute.name)
    earlier = None if verify_data else _hash_in(entry, now)
    if earlier is not None and set(checks) <= set(_checks_in(entry)):
        when_hashed[absolute] = now
        return earlier
    return None


class Remembering:
    """Hashes on their way into the cache; those of many small files are written together.

    `total` of them will be added, unless something is wrong with a file.
    """

    def __init__(self, total: int) -> None:
        self._missing = total
        self._saved = time.monotonic()
        self._books: dict[tuple[Path, Path | None], list[tuple[str, dict[str, Any]]]] = {}

    def add(
        self, path: Path, now: FileIdentity, sha256: str, checks: Iterable[str], cache: Path | None
    ) -> None:
        """Keep the hash of a file and the checks that its numbers passed, beside earlier ones."""
        absolute = _absolute(path)
        when_hashed[absolute] = now
        if not now.is_young:
            entry = {"identity": now.as_list(), "sha256": sha256, "checks": sorted(checks)}
            self._books.setdefault((absolute.parent, cache), []).append((absolute.name, entry))
        self._missing -= 1
        if self._missing <= 0 or time.monotonic() - self._saved > _OFTEN:
            self.save()

    def save(self) -> None:
        """Write what was added."""
        for (folder, cache), entries in self._books.items():
            with _remembering:
                book = Book(folder, cache)
                for name, entry in entries:
                    checks = set(entry["checks"])
                    earlier = book.entries.get(name)
                    if isinstance(earlier, dict) and all(
                        earlier.get(key) == entry[key] for key in ("identity", "sha256")
                    ):
                        checks.update(_checks_in(earlier))
                    book.enter(name, {**entry, "checks": sorted(checks)})
                book.save()
        self._books, self._saved = {}, time.monotonic()


def _checks_in(entry: Any) -> list[str]:
    checks = entry.get("checks", []) if isinstance(entry, dict) else []
    return [name for name in checks if isinstance(name, str)] if isinstance(checks, list) else []


def _hash_in(entry: Any, identity: FileIdentity) -> str | None:
    """The hash that an entry holds, if it is of a file that nobody has touched since."""
    if not isinstance(entry, dict) or entry.get("identity") != identity.as_list():
        return None
    sha256 = entry.get("sha256")
    return sha256 if isinstance(sha256, str) and len(sha256) == 64 else None


def hashed(path: Path, progress: Advance | None = None) -> tuple[str, FileIdentity]:
    """The hash of a file, read in blocks, and the identity that it had all the time."""
    with reading(path) as file:
        before = os.fstat(file.fileno())
        # Between two blocks this thread may have to wait for others that run Python.
        block = bytearray(min(_HASHED, before.st_size + 1))
        digest = hashlib.sha256()
        while count := file.readinto(block):
            digest.update(memoryview(block)[:count])
            if progress is not None:
                progress(count)
        after = os.fstat(file.fileno())
    identity = FileIdentity.of_status(before)
    if not identity.untouched(FileIdentity.of_status(after)):
        raise DataError(f"data file '{path_text(path)}' changed while it was read; start again")
    return digest.hexdigest(), identity
