"""Tiles: how matrix products are cut into blocks, by their shapes alone, and so are their bits.

csrc/gpu/matmul/tile.h has what a block does. A product is rows times columns, each a sum over
`depth`; where there are few tiles the depth is cut too, and the sums of its pieces are added by a
launch of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gradcli.engine.device.gpu.ends import End
from gradcli.engine.device.gpu.launch import CallSpec, Launch, Scratch, TensorArg, over

THREADS = 256  # of a block
ENOUGH_BLOCKS = 264  # two for each of the 132 processors of an H200
FEW_BLOCKS = 132
SHORTEST = 128  # of a piece of the depth
_DIVISOR = struct.Struct("3I")


class Tile(NamedTuple):
    """The ending of a kernel's name, and rows and columns of what a block of it makes."""

    name: str
    rows: int
    columns: int


TILES = (Tile("128", 128, 128), Tile("64", 64, 64), Tile("32", 32, 32))
SKINNY = Tile("16", 16, 64)
TENSOR_TILES = (Tile("128", 128, 128), Tile("64", 64, 64))
TENSOR_THREADS = 128
SLICE = 64  # bytes of k that a block of these multiplies at once


@dataclass(frozen=True)
class Cut:
    """The blocks of a batch of products."""

    tile: Tile
    tiles: int  # of the whole batch
    pieces: int  # of the depth
    piece: int  # how long they are, the last one perhaps shorter
    on_tensor_cores: bool = False

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The grid."""
        return (self.tiles * self.pieces, 1, 1)


def cut(batch: int, rows: int, columns: int, depth: int) -> Cut:
    """The largest tiles that keep a GPU busy, with as many pieces as that takes."""
    among = (SKINNY,) if rows <= SKINNY.rows else TILES
    return _cut(among, batch, rows, columns, depth, 1)


def tensor_cut(batch: int, rows: int, columns: int, depth: int, whole: int) -> Cut:
    """The same for tensor cores, with pieces that are multiples of a slice of k."""
    made = _cut(TENSOR_TILES, batch, rows, columns, depth, whole)
    return replace(made, on_tensor_cores=True)


def tensor_slice(call: CallSpec, may_round: float) -> int:
    """The k of a slice of shared memory; 0 where the call is not for tensor cores."""
    if not call.tensor_cores:
        return 0
    if call.tensors[0].dtype.name == "bfloat16":
        return SLICE // 2
    return SLICE // 4 if may_round else 0


def tensor_end(end: End, whole: Cut) -> End:
    """Where a kernel for tensor cores puts its sums: a row follows where there is but one piece.

    Else they go to the call's tensor, and those of pieces to a place beside it.
    """
    if end.row and whole.pieces == 1:
        return end
    return End((end.to[2 if end.row else 0], Scratch(0)))


def scratch_of(launch: Launch) -> int:
    """Bytes for the sums of pieces where there are none, but a kernel has an argument for them."""
    return 4 if Scratch(0) in launch.args else 0


def _cut(among: Sequence[Tile], batch: int, rows: int, columns: int, depth: int, whole: int) -> Cut:
    def tiles(tile: Tile) -> int:
        return batch * -(-rows // tile.rows) * -(-columns // tile.columns)

    def busy(tile: Tile) -> bool:
        return tiles(tile) * max(1, depth // (4 * SHORTEST)) >= FEW_BLOCKS

    chosen = next(filter(busy, among), among[-1])
    count, piece = pieces(tiles(chosen), depth, SHORTEST, whole)
    return Cut(chosen, tiles(chosen), count, piece)


def pieces(blocks: int, depth: int, shortest: int, whole: int = 1) -> tuple[int, int]:
    """How many pieces a depth is cut into, and their length, where there are `blocks` of each."""
    wanted = max(1, min(ENOUGH_BLOCKS // blocks, depth // shortest))
    piece = max(1, -(-depth // (wanted * whole))) * whole
    return max(1, -(-depth // piece)), piece


def join(
    suffix: str, count: int, end: End, size: int, bias: TensorArg, inner: int = 1, columns: int = 0
) -> Launch:
    """The sums of pieces in scratch, and a bias for each of some columns `inner` elements wide."""
    module = end.module("join", suffix)
    args = (Scratch(0), bias, *end.to, size, count, inner, columns)
    return Launch(module, f"{module.family}_{suffix}", over(size), THREADS, args)


def divisor(by: int) -> bytes:
    """A struct Divisor (csrc/gpu/divide.h)."""
    if by <= 1:
        return _DIVISOR.pack(1, 0, 0)
    shift = (by - 1).bit_length()  # by <= 2^shift
    magic = -(-(1 << (31 + shift)) // by)  # rounded up: below 2^32, and exact below 2^31
    return _DIVISOR.pack(by, magic, shift - 1)
