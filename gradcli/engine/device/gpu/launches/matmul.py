"""Launches of matrix products, and of a row of scalar_ops.h behind one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Arg,
    Launch,
    Module,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    launches,
    over,
)
from gradcli.engine.device.gpu.launches.elementwise import row_behind

FAMILY = "matmul"
THREADS = 256
ENOUGH_BLOCKS = 264  # two for each of the 132 processors of an H200
FEW_BLOCKS = 132
SHORTEST = 128  # of a piece of K
_PRODUCT = struct.Struct("16I")


class Tile(NamedTuple):
    """A kernel, and rows and columns of the tile that a block of it makes."""

    kernel: str
    rows: int
    columns: int


TILES = (Tile("matmul_128", 128, 128), Tile("matmul_64", 64, 64), Tile("matmul_32", 32, 32))
SKINNY = Tile("matmul_16", 16, 64)


@dataclass(frozen=True)
class Cut:
    """How a batch of products is cut into blocks: by its shape alone, and so are its bits."""

    tile: Tile
    tiles: int  # of the whole batch
    splits: int  # of K
    split: int  # its length

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return self.tiles * self.splits


def cut(batch: int, m: int, n: int, k: int) -> Cut:
    """The largest tiles that still keep a GPU busy; where there are few, K is cut too."""

    def tiles(tile: Tile) -> int:
        return batch * -(-m // tile.rows) * -(-n // tile.columns)

    def busy(tile: Tile) -> bool:
        return tiles(tile) * max(1, k // (4 * SHORTEST)) >= FEW_BLOCKS

    chosen = SKINNY if m <= SKINNY.rows else next(filter(busy, TILES), TILES[-1])
    wanted = max(1, min(ENOUGH_BLOCKS // tiles(chosen), k // SHORTEST))
    split = max(1, -(-k // wanted))
    return Cut(chosen, tiles(chosen), max(1, -(-k // split)), split)


@launches("matmul")
def matmul(call: Shapes) -> Plan:
    """The product a b + bias."""
    return product(call, Tensor(3))


@launches("matmul_then")
def matmul_then(call: Shapes) -> Plan:
    """The product a b + bias, then a row on all of it: with the bits of two calls."""
    before = Tensor(4 if call.numel(4) else 5)
    plan = product(call, before)
    row = row_behind(call, call.size(0), Tensor(3), before, Tensor(5))
    return Plan((*plan.launches, *row), plan.scratch)


def product(call: Shapes, to: Tensor) -> Plan:
    """The product a b + bias into one of the tensors."""
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    if batch * m * n == 0:
        return Plan()
    biased = call.numel(2) > 0
    turned = n <= SKINNY.rows < m  # the transposed product is done: it has few rows
    whole = cut(batch, n, m, k) if turned else cut(batch, m, n, k)
    one_pass = whole.splits == 1
    sides: list[int] = []
    for side, of_lines, of_k in ((b, 2, 1), (a, 1, 2)) if turned else ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
    size = (n, m) if turned else (m, n)
    steps = (1, n, biased and one_pass, 1, 0) if turned else (n, 1, biased and one_pass, 0, 1)
    packed = _PRODUCT.pack(*size, k, *sides, *steps, whole.splits, whole.split)
    first, second = (Tensor(1), Tensor(0)) if turned else (Tensor(0), Tensor(1))
    end: Arg = to if one_pass else Scratch(0)
    suffix = SUFFIX[a.dtype.name]
    module = Module(FAMILY, suffix)
    tiles = Launch(
        module,
        f"{whole.tile.kernel}_{suffix}",
        (whole.blocks, 1, 1),
        THREADS,
        (first, second, Tensor(2), end, packed),
    )
    if one_pass:
        return Plan((tiles,))
    everything = batch * m * n
    join = Launch(
        module,
        f"matmul_join_{suffix}",
        over(everything),
        THREADS,
        (Scratch(0), Tensor(2), to, everything, m * n, whole.splits, n if biased else 0),
    )
    return Plan((tiles, join), 4 * whole.splits * everything)
