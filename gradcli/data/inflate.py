"""gzip in bounded memory: any number of members, checksums verified, a limit on the output."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from gradcli.errors import DataError
from gradcli.wording import quantity

MAGIC = b"\x1f\x8b"
RATIO = 1032  # deflate cannot pack better: 258 bytes in 2 bits
# What is packed more tightly than this, and is longer, is no data but a bomb.
BOMB_RATIO, BOMB_SIZE = 200, 64 << 20
# Packed. After each piece a thread waits for the others to pause, which load modules meanwhile; and
# its content is still in the cache when it is copied to its place.
_PIECE = 256 << 10
_MOST_OUT = 4 << 20  # of a piece at once
_SOME = 1 << 20  # of content in pieces: its reader makes many times as much of each
_MEMBERS = 4096
TRUSTED_TEXT = 4 << 20  # of text and tables, however tightly packed


def is_gzip(data: bytes) -> bool:
    """Whether these bytes begin like gzip."""
    return data[:2] == MAGIC


def inflate(data: bytes, limit: int, source: str, trusted: int = BOMB_SIZE) -> bytearray:
    """The content of gzip bytes, at most `limit` bytes of it; `source` names the file in errors.

    Beyond `trusted` bytes it is refused as soon as it proves to be a bomb, whatever the limit.
    """
    stream = _GzipStream(data, limit, source, trusted)
    while stream.position < len(data):
        stream.member()
    return stream.content


def refuse_bomb(packed: int, unpacked: int, source: str, trusted: int = BOMB_SIZE) -> None:
    """Refuse what is packed so tightly that it can hold no data worth its memory."""
    if unpacked > max(trusted, BOMB_RATIO * packed):
        raise DataError(
            f"{source}: {quantity(packed, 'packed byte')} unpack to more than "
            f"{trusted >> 20} MiB and to more than {BOMB_RATIO} times as many; if these are data, "
            "name the unpacked file",
            code="E302",
        )


def peek(data: bytes, count: int, source: str) -> bytes:
    """Up to `count` bytes from the beginning of the content; the rest is not read."""
    content, start, rest = b"", 0, data[:_PIECE]
    try:
        while rest[:2] == MAGIC and len(content) < count:
            unpacker = zlib.decompressobj(wbits=31)
            content += unpacker.decompress(rest, count - len(content))
            start += len(rest) - len(unpacker.unused_data)
            rest = unpacker.unused_data
    except zlib.error as error:
        raise DataError(_damaged(source, start, error), code="E302") from None
    return content


def inflated(pieces: Iterator[bytes], size: int, source: str, trusted: int) -> Iterator[bytes]:
    """The content of gzip bytes that come in pieces, `size` in all; of any length, but no bomb."""
    position = members = total = 0
    data = b""
    while True:
        while len(data) < len(MAGIC) and (piece := next(pieces, b"")):
            data += piece
        if not data:
            return
        start, members = position, members + 1
        _check_member(data, members, size - start, start, source)
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            data = data or next(pieces, b"")
            if not data:
                raise DataError(f"{source}: gzip data ends early, at byte {size}", code="E302")
            try:
                out = unpacker.decompress(data, _SOME)
            except zlib.error as error:
                raise DataError(_damaged(source, start, error), code="E302") from None
            rest = unpacker.unconsumed_tail + unpacker.unused_data
            position += len(data) - len(rest)
            data = rest
            total += len(out)
            refuse_bomb(size, total, source, trusted)
            yield out


def _check_member(data: bytes, members: int, rest: int, start: int, source: str) -> None:
    if data[:2] != MAGIC:
        what = f"{quantity(rest, 'byte')} after the gzip data end at byte {start}"
        raise DataError(f"{source}: {what}", code="E302")
    if members > _MEMBERS:
        raise DataError(f"{source}: more than {_MEMBERS} gzip members", code="E302")


class _GzipStream:
    """Where we are: `position` in the packed bytes, and the content up to there."""

    def __init__(self, data: bytes, limit: int, source: str, trusted: int) -> None:
        self.trusted = trusted
        self.data = data
        self.view = memoryview(data)
        self.limit = limit
        self.source = source
        self.position = 0
        self.members = 0
        self.content = bytearray()

    def member(self) -> None:
        start = self.position
        self.members += 1
        head = self.data[start : start + 2]
        _check_member(head, self.members, len(self.data) - start, start, self.source)
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            piece = self.view[self.position : self.position + _PIECE]
            if not piece:
                self.refuse(f"gzip data ends early, at byte {len(self.data)}")
            try:
                room = self.limit + 1 - len(self.content)
                out = unpacker.decompress(piece, min(room, _MOST_OUT))
            except zlib.error as error:
                raise DataError(_damaged(self.source, start, error), code="E302") from None
            self.position += len(piece) - len(unpacker.unused_data) - len(unpacker.unconsumed_tail)
            self.content += out
            refuse_bomb(len(self.data), len(self.content), self.source, self.trusted)
            if len(self.content) > self.limit:
                self.refuse(
                    f"gzip data unpacks to more than the {quantity(self.limit, 'byte')} allowed "
                    "here"
                )

    def refuse(self, what: str) -> None:
        raise DataError(f"{self.source}: {what}", code="E302")


def _damaged(source: str, start: int, error: zlib.error) -> str:
    return f"{source}: gzip member at byte {start} is damaged: {_meaning(error)}"


def _meaning(error: zlib.error) -> str:
    text = str(error)
    if "incorrect data check" in text:
        return "its CRC does not match the content"
    if "incorrect length check" in text:
        return "its length does not match the content"
    return text.rpartition(": ")[2]
