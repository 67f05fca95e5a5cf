"""The frame of a PNG file: what Pillow takes for whole though parts are damaged or missing."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from gradcli.wording import quantity

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE = 3
# By the kind of colour: how many numbers a pixel has, and the bits that each may have.
COLORS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    PALETTE: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
# Of an interlaced picture, first column and row and the steps between them.
PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
_PIECE = 1 << 20
_MOST_CHUNKS = 100_000


def is_png(data: bytes) -> bool:
    """Whether these bytes begin like a PNG file."""
    return data.startswith(SIGNATURE)


def check_header(data: bytes) -> tuple[int, int]:
    """Width and height; a ValueError with the reason where the first chunk is not a PNG's."""
    kind, content = next(_chunks(data))
    if kind != b"IHDR" or len(content) != 13:
        raise ValueError("it does not begin with the chunk IHDR of 13 bytes")
    width, height = int.from_bytes(content[:4]), int.from_bytes(content[4:8])
    if not width or not height:
        raise ValueError(f"it has {quantity(f'{width} x {height}', 'pixel')}")
    depth, color, interlaced = content[8], content[9], content[12]
    if color not in COLORS or depth not in COLORS[color][1] or interlaced > 1:
        raise ValueError(
            f"no PNG has {quantity(depth, 'bit')}, colour {color} and interlacing {interlaced}"
        )
    return width, height


def bits_of(data: bytes) -> int:
    """The bits of a channel of a file whose header was checked."""
    return data[len(SIGNATURE) + 16]


def check(data: bytes) -> None:
    """Raise a ValueError with the reason where a PNG file is not whole.

    Every checksum is compared, and the rows are unpacked and counted.
    """
    check_header(data)
    (_, header), *chunks = _chunks(data)
    if header[9] == PALETTE and all(kind != b"PLTE" for kind, _ in chunks):
        raise ValueError("its colours are numbers of a palette that is not there")
    expected, unpacked = _bytes_of_rows(header), 0
    for count in _unpacked(content for kind, content in chunks if kind == b"IDAT"):
        unpacked += count
        if unpacked >= expected:
            return
    raise ValueError(f"its rows need {quantity(expected, 'byte')}, {unpacked} are there")


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Kind and content of each chunk up to IEND."""
    view, at, kind = memoryview(data), len(SIGNATURE), b""
    for _ in range(_MOST_CHUNKS):
        if at + 12 > len(data):
            raise ValueError(f"it ends at byte {len(data)}, before its last chunk")
        length = int.from_bytes(view[at : at + 4])
        kind, end = bytes(view[at + 4 : at + 8]), at + 8 + length
        if end + 4 > len(data):
            raise ValueError(f"it ends at byte {len(data)}, inside its chunk {_chunk_name(kind)}")
        if zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4]):
            raise ValueError(f"the checksum of its chunk {_chunk_name(kind)} at byte {at} is wrong")
        yield kind, view[at + 8 : end]
        if kind == b"IEND":
            return
        at = end + 4
    raise ValueError(f"it has more than {_MOST_CHUNKS} chunks")


def _chunk_name(kind: bytes) -> str:
    return kind.decode("ascii") if kind.isalpha() else kind.hex(" ")


def _bytes_of_rows(header: memoryview) -> int:
    """Bytes of the unpacked rows, each with a byte for its filter in front."""
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    bits = header[8] * COLORS[header[9]][0]
    passes = PASSES if header[12] else ((0, 0, 1, 1),)
    total = 0
    for left, top, across, down in passes:
        columns, rows = -(-(width - left) // across), -(-(height - top) // down)
        if columns > 0:
            total += max(0, rows) * (1 + (columns * bits + 7) // 8)
    return total


def _unpacked(packed: Iterable[memoryview]) -> Iterator[int]:
    """How many bytes each piece unpacks to."""
    unpacker = zlib.decompressobj()
    for piece in packed:
        rest: memoryview | bytes = piece
        while rest and not unpacker.eof:
            try:
                yield len(unpacker.decompress(rest, _PIECE))
            except zlib.error as error:
                reason = str(error).rpartition(": ")[2]
                raise ValueError(f"its pixels are damaged: {reason}") from None
            rest = unpacker.unconsumed_tail
