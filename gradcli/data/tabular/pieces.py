"""The content of a file in pieces, packed or not, and its text."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from gradcli.data.files import Loaded, path_text, reading, regular_size
from gradcli.data.inflate import TRUSTED_TEXT, inflated, is_gzip
from gradcli.errors import DataError

PIECE = 1 << 18  # bytes; the cells of a block stay in the cache
BOM = codecs.BOM_UTF8
ZSTD = b"\x28\xb5\x2f\xfd"


def pieces_of(path: Path) -> Iterator[bytes]:
    """The unpacked content of a regular file of any size; gzip is recognised by its first bytes."""
    size = regular_size(path)
    return _unpacked(_read(path, size), size, path_text(path))


def pieces_in(loaded: Loaded) -> Iterator[bytes]:
    """The same of a file that is in memory."""
    view = memoryview(loaded.data)
    raw = (bytes(view[at : at + PIECE]) for at in range(0, len(view), PIECE))
    return _unpacked(raw, len(view), path_text(loaded.path))


def _unpacked(raw: Iterator[bytes], size: int, source: str) -> Iterator[bytes]:
    first = next(raw, b"")
    whole = _with_first(first, raw)
    if is_gzip(first):
        return inflated(whole, size, source, TRUSTED_TEXT)
    return _unzstd(whole, size, source) if first.startswith(ZSTD) else whole


def _unzstd(pieces: Iterator[bytes], size: int, source: str) -> Iterator[bytes]:
    if find_spec("pyarrow") is None:
        what = "is packed with zstd, which gradcli reads through pyarrow, which is not installed"
        raise DataError(f"{source}: it {what}: pip install 'gradcli[tables]'", code="E302")
    from gradcli.data.arrow.unpacking import unzstd

    return unzstd(pieces, size, source)


def _with_first(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _read(path: Path, size: int) -> Iterator[bytes]:
    total = 0
    with reading(path) as file:
        while piece := file.read(PIECE):
            total += len(piece)
            yield piece
    if total != size:
        raise DataError(f"data file '{path_text(path)}' changed while it was read; start again")


def texts(pieces: Iterator[bytes], source: str) -> Iterator[str]:
    """UTF-8 text without a byte order mark; the text before a wrong byte comes before the error.

    Raises:
        DataError: with the line and the offset of the first byte that is not UTF-8.
    """
    rest, offset, lines, inside = b"", 0, 1, False
    for final, piece in _last_marked(pieces):
        data = rest + piece
        if not inside and len(data) < len(BOM) and not final:
            rest = data
            continue
        if not inside and data.startswith(BOM):
            data, offset = data[len(BOM) :], len(BOM)
        inside = True
        try:
            text, consumed = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError as error:
            yield data[: error.start].decode()
            line = lines + data.count(b"\n", 0, error.start)
            raise DataError(
                f"{source}:{line}: not UTF-8 text: byte {data[error.start]:#04x} "
                f"at byte offset {offset + error.start}",
                code="E304",
            ) from None
        yield text
        rest = data[consumed:]
        offset += consumed
        lines += data.count(b"\n", 0, consumed)


def lines_in(texts: Iterator[str], most: int) -> Iterator[str]:
    """The lines of a text in pieces; of one that has more than `most` characters, the beginning."""
    rest = ""
    for text in texts:
        *whole, last = text.split("\n")
        if not whole:
            rest += last
        else:
            yield rest + whole[0]
            yield from whole[1:]
            rest = last
        if len(rest) > most:
            break
    if rest:
        yield rest


def _last_marked(pieces: Iterator[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Each piece, and whether it is the last one."""
    before = next(pieces, b"")
    for piece in pieces:
        yield False, before
        before = piece
    yield True, before
