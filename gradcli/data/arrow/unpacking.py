"""zstd in bounded memory, through pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from gradcli.data.files import path_text
from gradcli.data.inflate import TRUSTED_TEXT, refuse_bomb
from gradcli.errors import DataError

_PIECE = 1 << 20


def unzstd(pieces: Iterator[bytes], size: int, source: str) -> Iterator[bytes]:
    """The content of zstd bytes that come in pieces, `size` in all; of any length, but no bomb."""
    total, buffer = 0, bytearray(_PIECE)  # `read` would lose its memory where the data end early
    try:
        with pa.CompressedInputStream(pa.PythonFile(_ZstdStream(pieces), "r"), "zstd") as stream:
            while count := stream.readinto(buffer):
                total += count
                refuse_bomb(size, total, source, TRUSTED_TEXT)
                yield bytes(memoryview(buffer)[:count])
    except (pa.ArrowException, OSError) as error:
        reason = path_text(str(error).partition("\n")[0])[:200]
        raise DataError(f"{source}: zstd data is damaged: {reason}", code="E302") from None


class _ZstdStream(io.RawIOBase):
    """Pieces as a file that is read from its beginning."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        piece = self._rest[: len(buffer)]
        self._rest = self._rest[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)
