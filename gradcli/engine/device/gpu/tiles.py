"""Tiles: how matrix products are cut into blocks, by their shapes alone, and so are their bits.

csrc/gpu/matmul/tile.h has what a block does. A product is rows times columns, each a sum over
`depth`; where there are few tiles the depth is cut too, and the sums of its pieces are added by a
launch of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.ends import End
from gradcli.engine.device.gpu.launch import THREADS, Arg, CallSpec, Draft, over, tensors

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
    apart: bool  # whether sums wait in scratch memory for a launch that joins or ends them
    on_tensor_cores: bool = False

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The grid."""
        return (self.tiles * self.pieces, 1, 1)


class Bias(NamedTuple):
    """A tensor of a call: a number for each of some columns `inner` elements wide."""

    number: int = 0
    inner: int = 1
    columns: int = 0


NO_BIAS = Bias()


def cut(batch: int, rows: int, columns: int, depth: int) -> Cut:
    """The largest tiles that keep a GPU busy, with as many pieces as that takes."""
    among = (SKINNY,) if rows <= SKINNY.rows else TILES
    return _cut(among, batch, rows, columns, depth, 1)


def tensor_cut(batch: int, rows: int, columns: int, depth: int, whole: int) -> Cut:
    """The same for tensor cores, with pieces that are multiples of a slice of k."""
    return replace(_cut(TENSOR_TILES, batch, rows, columns, depth, whole), on_tensor_cores=True)


def cut_of(
    call: CallSpec, may_round: float, batch: int, rows: int, columns: int, depth: int
) -> Cut:
    """The one or the other, as the call's type, its options and the device say."""
    if call.tensor_cores and call.suffix() == "bf16":
        return tensor_cut(batch, rows, columns, depth, SLICE // 2)
    if call.tensor_cores and may_round:
        return tensor_cut(batch, rows, columns, depth, SLICE // 4)
    return cut(batch, rows, columns, depth)


def _cut(among: Sequence[Tile], batch: int, rows: int, columns: int, depth: int, whole: int) -> Cut:
    def tiles(tile: Tile) -> int:
        return batch * -(-rows // tile.rows) * -(-columns // tile.columns)

    def busy(tile: Tile) -> bool:
        return tiles(tile) * max(1, depth // (4 * SHORTEST)) >= FEW_BLOCKS

    tile = next(filter(busy, among), among[-1])
    count, piece = pieces(tiles(tile), depth, SHORTEST, whole)
    return Cut(tile, tiles(tile), count, piece, apart=count > 1)


def pieces(blocks: int, depth: int, shortest: int, whole: int = 1) -> tuple[int, int]:
    """How many pieces a depth is cut into, and their length, where there are `blocks` of each."""
    most = max(1, min(ENOUGH_BLOCKS // blocks, depth // shortest))
    piece = max(1, -(-depth // (most * whole))) * whole
    return max(1, -(-depth // piece)), piece


def launch_product(
    call: Draft,
    name: str,
    whole: Cut,
    sources: tuple[Arg, ...],
    end: End,
    sizes: bytes,
    way: str = "",
    bias: Bias = NO_BIAS,
) -> None:
    """Launch the tiles of a product; where its sums are apart, then what joins and ends them.

    On tensor cores a kernel without a row has two places: the call's tensor, and that of pieces.
    """
    family, threads, row, to = end.family(name), THREADS, end.row, end.to
    if whole.apart:
        sums = call.scratch(4 * whole.pieces * call.numel(end.out))
        family, row, to = name, "", (sums,)
    if whole.on_tensor_cores:
        family, threads = f"{family}_tensor", TENSOR_THREADS
        if not row:
            to = *tensors(end.out), *(to if whole.apart else (call.scratch(0),))
    kernel = "_".join(filter(None, (family, whole.tile.name, way)))
    args = *sources, *to, sizes
    call.launch(kernel, whole.blocks, *args, threads=threads, family=family, row=row)
    if whole.apart:
        join(call, sums, whole.pieces, end, bias)


def join(call: Draft, sums: Arg, pieces: int, end: End, bias: Bias = NO_BIAS) -> None:
    """Add up the sums of pieces, and a bias."""
    count, family = call.numel(end.out), end.family("join")
    args = sums, *tensors(bias.number), *end.to, count, pieces, bias.inner, bias.columns
    call.launch(family, over(count), *args, family=family, row=end.row)


def divisor(by: int) -> bytes:
    """A struct Divisor (csrc/gpu/divide.h)."""
    if by <= 1:
        return _DIVISOR.pack(1, 0, 0)
    shift = (by - 1).bit_length()  # by <= 2^shift
    magic = -(-(1 << (31 + shift)) // by)  # rounded up: below 2^32, and exact below 2^31
    return _DIVISOR.pack(by, magic, shift - 1)
