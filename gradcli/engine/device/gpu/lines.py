"""Lines: how a reduction of (outer, n, inner) along n is shared by blocks (csrc/gpu/lines.h).

It depends on the shape alone, so the order of a sum does too.
"""

from __future__ import annotations

import math
import struct

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.launch import THREADS, OperandSpec

_LINES = struct.Struct("6I")
_WARP = 32
_SHORTEST = 16  # elements of a chunk that one thread goes through, at least
_EACH = 8  # elements of a thread, at least, before another one helps
_BLOCKS = 1024  # keep a large GPU busy
_CHUNKS = 1024  # most parts that a second launch puts together


@dataclass(frozen=True)
class Lines:
    """Sizes of a struct Lines, and the grid for them."""

    results: int
    n: int
    inner: int
    chunk: int
    chunks: int
    members: int
    threads: int

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks for all results and chunks."""
        return (-(-self.results * self.members // self.threads), self.chunks, 1)

    @property
    def packed(self) -> bytes:
        """The struct."""
        apart = 1 if self.inner == 1 else self.threads // self.members
        return _LINES.pack(self.results, self.n, self.inner, self.chunk, self.members, apart)


def lines(x: OperandSpec, threads: int = THREADS, cut: bool = True) -> Lines:
    """The lines of a contiguous tensor (outer, n, inner); `cut` where n may be in chunks."""
    outer, n, inner = x.shape
    return lines_of(outer * inner, n, inner, threads, cut)


def lines_of(results: int, n: int, inner: int, threads: int = THREADS, cut: bool = True) -> Lines:
    """The same for `results` lines of n, of which `inner` lie in step."""
    enough = power_of_two(-(-n // _EACH), threads)
    columns = 1 if inner == 1 else power_of_two(results, _WARP)  # of one step: a warp, if so many
    members = min(enough, threads // columns)
    blocks = max(1, -(-results * members // threads))
    chunks = min(-(-n // (2 * _EACH * members)), -(-_BLOCKS // blocks), _CHUNKS) if cut else 1
    chunk = max(1, -(-n // max(1, chunks)))
    return Lines(results, n, max(1, inner), chunk, max(1, -(-n // chunk)), members, threads)


def parts(cut: Lines) -> Lines:
    """The lines of what all chunks gave: (chunks, results)."""
    return lines_of(cut.results, cut.chunks, cut.results, cut=False)


def power_of_two(n: int, most: int) -> int:
    """The smallest power of two from n on, up to `most`."""
    power = 1
    while power < min(n, most):
        power *= 2
    return power


def even_cut(n: int) -> int:
    """How many of n elements a thread goes through: about as many as there are such chunks."""
    return max(_SHORTEST, math.isqrt(max(0, n - 1)) + 1)
