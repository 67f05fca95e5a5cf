"""What is done to images on their way into a batch: numbers by sample, and pixels moved about."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.index.index_select import run_as
from gradcli.engine.sample import index, sample, wrong
from gradcli.errors import DTypeError, OptionError, ShapeError

MOST = 128  # numbers of one draw


@op(
    method=False,
    samples=[
        sample(index((3,), 1 << 40), index((4,), 60_000), count=5),
        sample(index((3,), 9), index((1,), 3), count=128),
        sample(index((3,), 9), index((0,), 3), count=2),
        sample(index((3,), 9), index((70,), 3), count=1),
    ],
    wrong=[
        wrong(sample(index((2,), 9), index((4,), 3), count=1), "rand_at: "),
        wrong(sample(index((3,), 9), (4,), count=1), "rand_at: takes int64"),
        wrong(sample(index((3,), 9), index((4,), 3), count=129), "rand_at: count must be"),
    ],
    why="a draw does not change smoothly",
)
def rand_at(state: Array, draws: Array, *, count: int, dtype: DType = dtypes.float32) -> Array:
    """Row i: the first `count` numbers in [0, 1) of draw number draws[i] after `state`.

    `state` is what `get_rng_state` gives: (key, step, first draw). A row depends on these numbers
    alone, and on no other row.
    """
    if state.shape != (3,) or draws.ndim != 1 or {state.dtype, draws.dtype} != {dtypes.int64}:
        raise DTypeError(
            "rand_at: takes int64 (3,) and int64 (n,), got "
            f"{state.dtype} {state.shape} and {draws.dtype} {draws.shape}"
        )
    if not 0 <= count <= MOST:
        raise OptionError(f"rand_at: count must be 0 to {MOST}, got {count}")
    out = empty((draws.shape[0], count), dtype)
    run_as("rand_at", "uniform_at", state.contiguous(), draws.contiguous(), out, sizes=(0,))
    return out


@op(
    method=False,
    samples=[
        sample((2, 3, 5, 4), (2, 6)),
        sample((1, 1, 1, 3), (1, 6)),
        sample((0, 2, 3, 3), (0, 6)),
        sample((2, 0, 3, 3), (2, 6)),
    ],
    wrong=[
        wrong(sample((2, 3, 4), (2, 6)), "affine: takes images"),
        wrong(sample((2, 3, 4, 4), (3, 6)), "affine: takes images"),
    ],
    why="it prepares data",
)
def affine(x: Array, maps: Array) -> Array:
    """y[i, j] = x at row m0 i + m1 j + m2 and column m3 i + m4 j + m5: bilinear, 0 outside.

    x is (N, C, H, W); `maps` (N, 6) has the numbers of each image. Whole shifts and flips give the
    very pixels.
    """
    if x.ndim != 4 or maps.shape != (x.shape[0], 6) or maps.dtype is not x.dtype:
        raise ShapeError(
            "affine: takes images (N, C, H, W) and maps (N, 6) of one type, got "
            f"{x.dtype} {x.shape} and {maps.dtype} {maps.shape}"
        )
    out = empty(x.shape, x.dtype)
    run("affine", x.contiguous(), maps.contiguous(), out)
    return out
