"""Launches of sum, mean, norm and variance along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors
from gradcli.engine.device.gpu.lines import lines, parts


@launches("sum", "mean")
def total(call: Draft) -> None:
    """One launch, or two where n is in chunks; a mean's divisor is its option."""
    cut = lines(call.tensors[0])
    whole = call.suffix() != "f32"  # a part of whole numbers is one, and one kernel writes both
    divisor = () if whole else (call.option(0) if call.kernel == "mean" else 1.0,)
    if cut.chunks == 1:
        call.launch("sum", cut.grid, *tensors(0, 1), cut.packed, *divisor)
        return
    back, count = parts(cut), cut.results * cut.chunks
    sums = (call.scratch(8 * count),) if whole else call.pair(count)
    call.launch("sum" if whole else "sum_parts", cut.grid, *tensors(0), *sums, cut.packed)
    call.launch("sum_of_parts", back.grid, *sums, *tensors(1), back.packed, *divisor)


@launches("length")
def length(call: Draft) -> None:
    """Parts of the sum of squares, and the roots of what they add up to."""
    cut = lines(call.tensors[0])
    back, sums = parts(cut), call.pair(cut.results * cut.chunks)
    call.launch("length_parts", cut.grid, *tensors(0), *sums, cut.packed)
    call.launch("length_of_parts", back.grid, *sums, *tensors(1), back.packed)


@launches("var")
def variance(call: Draft) -> None:
    """Parts of the sum, means, parts of the squares about them, and what comes of these."""
    cut = lines(call.tensors[0])
    back, sums = parts(cut), call.pair(cut.results * cut.chunks)
    means = call.pair(cut.results)
    call.launch("sum_parts", cut.grid, *tensors(0), *sums, cut.packed)
    call.launch("mean_of_parts", back.grid, *sums, *means, back.packed, float(cut.n))
    call.launch("square_parts", cut.grid, *tensors(0), *means, *sums, cut.packed)
    args = *sums, means[0], *tensors(1, 2), back.packed, *_divisor(call, cut.n)
    call.launch("var_of_parts", back.grid, *args)


def _divisor(call: Draft, n: int) -> tuple[float, bool]:
    """What the squares are divided by, and whether the root is wanted."""
    return max(n - call.option(0), 0.0), call.size(0) != 0


@launches("var_backward")
def variance_backward(call: Draft) -> None:
    """One pass over x."""
    count, (_, n, inner) = call.numel(), call.tensors[0].shape
    args = *tensors(*range(5)), count, n, inner, *_divisor(call, n)
    call.launch("var_backward", over(count), *args)
