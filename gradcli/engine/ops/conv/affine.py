"""Images sampled at positions of an affine map."""

from __future__ import annotations

from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import op
from gradcli.engine.sample import sample, wrong
from gradcli.errors import ShapeError


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
