"""Launches of sum, mean, norm and variance along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Arg,
    CallSpec,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    tensors,
)
from gradcli.engine.device.gpu.lines import Lines, lines, parts

FAMILY = "reduce"


def pair(offset: int, count: int) -> tuple[Scratch, Scratch]:
    """Scratch for so many numbers of two floats."""
    return Scratch(offset), Scratch(offset + 4 * count)


@launches("sum", "mean")
def total(call: CallSpec) -> Plan:
    """One launch, or two where n is in chunks; a mean's divisor is its option."""
    cut = lines(call.tensors[0])
    if not cut.results:
        return Plan()
    suffix = SUFFIX[call.tensors[0].dtype.name]
    if suffix != "f32":
        return _whole(cut, suffix)
    divisor = call.option(0) if call.kernel == "mean" else 1.0
    if cut.chunks == 1:
        args: tuple[Arg, ...] = *tensors(0, 1), cut.packed, divisor
        return Plan((launch(FAMILY, "sum", suffix, cut.grid, *args),))
    back, count = parts(cut), cut.results * cut.chunks
    kept = pair(0, count)
    some = launch(FAMILY, "sum_parts", suffix, cut.grid, TensorArg(0), *kept, cut.packed)
    args = *kept, TensorArg(1), back.packed, divisor
    return Plan((some, launch(FAMILY, "sum_of_parts", suffix, back.grid, *args)), 8 * count)


def _whole(cut: Lines, suffix: str) -> Plan:
    """Whole numbers: the same kernel writes parts or results."""
    to = TensorArg(1) if cut.chunks == 1 else Scratch(0)
    some = launch(FAMILY, "sum", suffix, cut.grid, TensorArg(0), to, cut.packed)
    if cut.chunks == 1:
        return Plan((some,))
    back = parts(cut)
    last = launch(FAMILY, "sum_of_parts", suffix, back.grid, Scratch(0), TensorArg(1), back.packed)
    return Plan((some, last), 8 * cut.results * cut.chunks)


@launches("length")
def length(call: CallSpec) -> Plan:
    """Parts of the sum of squares, and the roots of what they add up to."""
    cut = lines(call.tensors[0])
    if not cut.results:
        return Plan()
    back, count = parts(cut), cut.results * cut.chunks
    kept = pair(0, count)
    some = launch(FAMILY, "length_parts", "f32", cut.grid, TensorArg(0), *kept, cut.packed)
    roots = launch(FAMILY, "length_of_parts", "f32", back.grid, *kept, TensorArg(1), back.packed)
    return Plan((some, roots), 8 * count)


@launches("var")
def variance(call: CallSpec) -> Plan:
    """Parts of the sum, means, parts of the squares about them, and what comes of these."""
    cut = lines(call.tensors[0])
    if not cut.results:
        return Plan()
    back, count = parts(cut), cut.results * cut.chunks
    kept, means = pair(0, count), pair(8 * count, cut.results)
    outs = tensors(1, 2)
    free = max(cut.n - call.option(0), 0.0)
    every = (
        launch(FAMILY, "sum_parts", "f32", cut.grid, TensorArg(0), *kept, cut.packed),
        launch(FAMILY, "mean_of_parts", "f32", back.grid, *kept, *means, back.packed, float(cut.n)),
        launch(FAMILY, "square_parts", "f32", cut.grid, TensorArg(0), *means, *kept, cut.packed),
        launch(
            FAMILY,
            "var_of_parts",
            "f32",
            back.grid,
            *(*kept, means[0], *outs, back.packed, free, int(call.size(0) != 0)),
        ),
    )
    return Plan(every, 8 * (count + cut.results))


@launches("var_backward")
def variance_backward(call: CallSpec) -> Plan:
    """One pass over x."""
    count, (_, n, inner) = call.numel(), call.tensors[0].shape
    if not count:
        return Plan()
    free = max(n - call.option(0), 0.0)
    args = *tensors(*range(5)), count, n, inner, free, int(call.size(0) != 0)
    return Plan((launch(FAMILY, "var_backward", "f32", over(count), *args),))
