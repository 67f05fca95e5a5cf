"""Large files read once in the background, for their hash and for numbers that are not allowed."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from gradcli.data.files import check_sums, path_text, reading
from gradcli.data.hashes import PendingHash
from gradcli.data.prepared.identity import BLOCK, FileIdentity, Remembering, recall
from gradcli.data.prepared.number_checks import Check
from gradcli.errors import DataError, GradcliError


class FileReading(PendingHash):
    """One file that is read to its end; what it is known to be already, it need not be.

    Attributes:
        elsewhere: a file of this name in another folder that SHA256SUMS lists in its place.
    """

    def __init__(
        self, path: Path, identity: FileIdentity, check: Check | None, cache: Path | None = None
    ) -> None:
        super().__init__(f"reading {path_text(path.name)}", identity.size)
        self.path = path
        self.elsewhere: str | None = None
        self._identity = identity
        self._check = check
        self._cache = cache
        self._sha256 = recall(path, identity, self._checks(), cache)
        if self._sha256 is not None:
            self._compare(self._sha256)
            self._end.set()

    def _checks(self) -> tuple[str, ...]:
        return () if self._check is None else (self._check.name,)

    def read(self, remembering: Remembering) -> None:
        """Read it to its end, or to the first fault."""
        if self._end.is_set():
            return
        try:
            self._sha256 = self._stream()
            self._compare(self._sha256)
            remembering.add(self.path, self._identity, self._sha256, self._checks(), self._cache)
        except GradcliError as error:
            self.fault = error
        except Exception as error:  # such as no memory; raised where the hash is awaited
            self.fault = error
        finally:
            self._end.set()

    def _compare(self, sha256: str) -> None:
        """With the SHA256SUMS beside it."""
        try:
            self.elsewhere = check_sums(self.path, sha256)
        except DataError as error:
            self.fault = error
            raise

    def _stream(self) -> str:
        digest = hashlib.sha256()
        with reading(self.path) as file:
            self._same(os.fstat(file.fileno()))
            start = file.read(0 if self._check is None else self._check.offset)
            digest.update(start)
            self._bytes = offset = len(start)
            while block := _full(file):
                digest.update(block)  # lets other threads run
                if self._check is not None:
                    self._look(self._check, block, self._bytes - offset)
                self._bytes += len(block)
            self._same(os.fstat(file.fileno()))
        return digest.hexdigest()

    def _look(self, check: Check, block: bytes, first: int) -> None:
        fault = check.fault(block, first)
        if fault is not None:
            raise DataError(f"{path_text(self.path)}: {fault}", code="E305")

    def _same(self, now: os.stat_result) -> None:
        if not stat.S_ISREG(now.st_mode) or FileIdentity.of_status(now) != self._identity:
            raise DataError(
                f"data file '{path_text(self.path)}' was changed while it was being read; start "
                "again",
                code="E312",
            )


def _full(file: object) -> bytes:
    """The next block; only the last one is shorter, so that no number is cut in two."""
    parts: list[bytes] = []
    missing = BLOCK
    while missing and (part := file.read(missing)):  # type: ignore[attr-defined]
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def begin(readings: Sequence[FileReading]) -> None:
    """Read the files that are not known yet, one after the other, in a thread."""
    unread = [file for file in readings if not file.ready]
    if unread:
        threading.Thread(target=_read_all, args=(unread,), daemon=True, name="hashes").start()


def _read_all(readings: Sequence[FileReading]) -> None:
    remembering = Remembering(len(readings))
    for file in readings:
        file.read(remembering)
    remembering.save()  # also where a file was wrong
