"""Variances and standard deviations, in two passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, run
from gradcli.engine.composite import function
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.reduce.sum import Dim, mean
from gradcli.engine.sample import Sample, distinct, sample, with_numbers
from gradcli.engine.shape import dim_set, numel
from gradcli.engine.tensor import Tensor


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None:
        return float(unbiased)
    return 1 if correction is None else correction


_SAMPLES = (
    sample((3, 5)),
    sample((3, 5), dim=0),
    sample((2, 3, 4), dim=1, keepdim=True),
    sample((2, 3, 4), dim=(0, -1), correction=0),
    sample((2, 4, 3), dim=1, unbiased=False),
    sample((2, 1, 3, 2), dim=(1, 2), correction=2),
    sample((4, 2), dim=0, correction=None),
    sample((4, 1), dim=0, correction=2),
    sample((0, 3), dim=1),
)


def _decomposed_var(
    x: Tensor,
    *,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = 1,
) -> Tensor:
    dims = dim_set(dim, x.ndim, "var")
    lowered = x - table.mean(x, dims, keepdim=True)
    divisor = numel(tuple(x.shape[d] for d in dims)) - _correction(unbiased, correction)
    return table.sum(lowered * lowered, dims, keepdim=keepdim) / max(0.0, divisor)


def _decomposed_std(x: Tensor, **options: Any) -> Tensor:
    variance = _decomposed_var(x, **options)
    flat = variance == 0  # the slope of the root there is 0 by decree
    return table.where(flat, 0.0, table.sqrt(table.where(flat, 1.0, variance)))


def _spread(
    name: str, doc: str, decomposition: Callable[..., Tensor], samples: Sequence[Sample]
) -> Op[Tensor]:
    """The variance, or its root; the mean is kept with its dims."""
    root = (int(name == "std"),)

    def forward(
        x: Array,
        *,
        dim: Dim = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: float | None = 1,
    ) -> tuple[Array, Array]:
        lines = along(x.shape, shapes.dim_set(dim, x.ndim, name))
        x = floats(name, x)
        y, mean = lines.empty(x.dtype), lines.empty(x.dtype.computed)
        options = (_correction(unbiased, correction),)
        run("var", lines.fold(x), y, mean, sizes=root, options=options)
        return y.reshape(shapes.reduced(x.shape, lines.dims, keepdim)), mean

    forward.__doc__ = doc
    new_op = op(
        name=name,
        saves=("x", "y", "mean"),
        outputs=("y", "mean"),
        decomposition=decomposition,
        double_backward="decomposition",
        samples=samples,
    )(forward)

    @new_op.gradient
    def gradient(
        grad: Array,
        *,
        x: Array,
        y: Array,
        mean: Array,
        dim: Dim,
        unbiased: bool | None,
        correction: float | None,
    ) -> Array:
        """2 (x - mean) / (n - correction); for the root that over 2 y, and 0 where y is 0."""
        lines = along(x.shape, shapes.dim_set(dim, x.ndim, name))
        out = lines.whole(x.dtype)
        y, grad = lines.fold_result(y), lines.fold_result(grad)
        options = (_correction(unbiased, correction),)
        run("var_backward", lines.fold(x), y, mean, grad, out, sizes=root, options=options)
        return lines.unfold(out)

    return new_op


var = _spread(
    "var",
    "Sum of (x - mean) squared over n - correction, in two passes; NaN where that is 0 / 0.",
    _decomposed_var,
    _SAMPLES,
)
std = _spread(
    "std",
    "Square root of var.",
    _decomposed_std,
    with_numbers(distinct, _SAMPLES),
)


def _with_mean(name: str, spread: Op[Tensor], doc: str) -> None:
    def both(
        input: Tensor,
        dim: Dim = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = 1,
    ) -> tuple[Tensor, Tensor]:
        first = spread(input, dim, unbiased, keepdim, correction=correction)
        return first, mean(input, dim, keepdim)

    both.__doc__ = f"The {doc} gives it, and the mean, over `dim` or over everything."
    function(name, samples=_SAMPLES)(both)


_with_mean("std_mean", std, "standard deviation, as std")
_with_mean("var_mean", var, "variance, as var")
