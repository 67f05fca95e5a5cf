"""Large .npy and IDX files whose numbers lie otherwise than in tensors, prepared in blocks of rows.

Such are numbers of 64 or 16 bits, in the other order of bytes, with the first dimension running
fastest (Fortran), or packed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gradcli import engine
from gradcli.data import idx, npy
from gradcli.data.array_files import tensor
from gradcli.data.files import Loaded, path_text, read, regular_size
from gradcli.data.images import check_finite
from gradcli.data.inflate import RATIO, is_gzip, refuse_bomb
from gradcli.data.prepared_rows import RowReading, rows_in
from gradcli.data.samples import tensor_of
from gradcli.data.tabular.pieces import pieces_of
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity

VERSION = 1  # of prepared data
BLOCK = 1 << 20  # bytes of rows that are read at once
TRANSPOSE_BYTES = 16 << 20  # at once: the more, the longer are the stretches that are read


def npy_array(path: Path, header: npy.NpyHeader, cache: Path) -> tuple[Tensor, Loaded]:
    """The numbers of an .npy file mapped from prepared data, and what is known of it.

    Raises:
        DataError: a number is outside float32 or int64.
    """
    scattered = header.fortran and len(header.shape) > 1
    read_blocks = _scattered_blocks if scattered else _npy_blocks
    rows = RowReading("npy", VERSION, {}, lambda: (header.shape[0], read_blocks(path, header)))
    return rows_in(path, rows, cache)


def idx_array(path: Path, header: idx.IdxHeader, cache: Path) -> tuple[Tensor, Loaded]:
    """The numbers of an IDX file mapped from prepared data, and what is known of it.

    Raises:
        DataError: the file is damaged or a bomb, or a number is NaN or infinite.
    """
    rows = RowReading("idx", VERSION, {}, lambda: (header.shape[0], _idx_blocks(path, header)))
    return rows_in(path, rows, cache)


def _npy_blocks(path: Path, header: npy.NpyHeader) -> Iterator[Tensor]:
    source, first = path_text(path), 0
    for block in _rows(path, header, int(header.type[1])):
        numbers = npy.numbers_of(header, memoryview(block), source)
        count = len(block) // _width(header, int(header.type[1]))
        part = replace(header, fortran=False, shape=(count, *header.shape[1:]))
        yield tensor(npy.Npy(part, numbers), source, first)
        first += count


def _idx_blocks(path: Path, header: idx.IdxHeader) -> Iterator[Tensor]:
    source, first = path_text(path), 0
    if is_gzip(read(path, 2)):
        packed = regular_size(path)
        if header.total > packed * RATIO:
            what = f"gzip of {quantity(packed, 'byte')} cannot hold {header}"
            raise DataError(f"{source}: {what}", code="E302")
        refuse_bomb(packed, header.total, source)
    for block in _rows(path, header, header.item):
        count = len(block) // _width(header, header.item)
        part = idx.Idx(
            replace(header, shape=(count, *header.shape[1:])),
            idx.numbers_of(memoryview(block), header),
        )
        rows = tensor_of(part.numbers, part.header.shape)
        if rows.is_floating_point() and not engine.isfinite(rows).all().item():
            check_finite(part, source, first)
        yield rows
        first += count


def _width(header: npy.NpyHeader | idx.IdxHeader, item: int) -> int:
    """Bytes of a row."""
    return math.prod(header.shape[1:]) * item


def _rows(path: Path, header: npy.NpyHeader | idx.IdxHeader, item: int) -> Iterator[bytes]:
    """The bytes of all rows behind the header, several whole ones at a time."""
    size = _width(header, item)
    size *= max(1, BLOCK // size)
    rest, skip, missing = bytearray(), header.length, header.total - header.length
    for piece in pieces_of(path):
        rest += piece[skip:]
        skip -= min(skip, len(piece))
        begin = 0
        while len(rest) - begin >= size:
            yield bytes(rest[begin : begin + size])
            begin += size
        del rest[:begin]
        missing -= begin
        if len(rest) > missing:
            break
    if len(rest) != missing:
        what = f"expected {quantity(header.total, 'byte')} from the header ({header})"
        difference = "fewer" if len(rest) < missing else "more"
        raise DataError(f"{path_text(path)}: {what}, got {difference}", code="E302")
    if rest:
        yield bytes(rest)


def _scattered_blocks(path: Path, header: npy.NpyHeader) -> Iterator[Tensor]:
    """Rows of an array whose columns lie one behind the other."""
    item, (count, *inner) = int(header.type[1]), header.shape
    columns, source = math.prod(inner), path_text(path)
    most = max(1, TRANSPOSE_BYTES // (columns * item))
    with path.open("rb", buffering=0) as file:
        for first in range(0, count, most):
            rows = min(most, count - first)
            starts = (header.length + (k * count + first) * item for k in range(columns))
            content = b"".join(os.pread(file.fileno(), rows * item, start) for start in starts)
            if len(content) != rows * columns * item:
                raise DataError(f"data file '{source}' changed while it was read; start again")
            numbers = npy.numbers_of(header, memoryview(content), source)
            part = replace(header, shape=(rows, *inner))
            yield tensor(npy.Npy(part, numbers), source, first)
