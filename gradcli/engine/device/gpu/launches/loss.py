"""Launches of cross-entropy, the mean squared error, and their gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Arg,
    CallSpec,
    Errors,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    single_launch,
    tensors,
    words,
)
from gradcli.engine.device.gpu.lines import Lines, lines

FAMILY = "loss"
NONE, MEAN = 0, 1  # reductions; the third is the sum
_ENTROPY = struct.Struct("5If")
_PARTS = 256  # blocks of a sum over all rows, at most
_EACH = 4096  # rows of a block, at least
_WIDE = 4096  # classes from which on more threads share a row


def _entropy(call: CallSpec) -> bytes:
    """sizes: reduction, the target to ignore, 1 for logarithms; options: label smoothing."""
    weighted = int(call.numel(2) > 0)
    return _ENTROPY.pack(
        call.size(0), int(call.size(2) != 0), weighted, *words(call.size(1)), call.option(0)
    )


def _samples(call: CallSpec) -> Lines:
    """A line is a row of x."""
    wide = call.tensors[0].shape[1] > _WIDE
    return lines(call.tensors[0], threads=1024 if wide else 256, cut=False)


@launches("cross_entropy")
def cross_entropy(call: CallSpec) -> Plan:
    """Each row by itself, then parts of the sums over all rows, then the sums."""
    cut = _samples(call)
    rows = cut.results
    blocks = max(1, min(-(-rows // _EACH), _PARTS))
    losses: Arg = TensorArg(3) if call.size(0) == NONE else Scratch(0)
    weights, parts = Scratch(4 * rows), Scratch(8 * rows)
    every = []
    if rows:
        outs = losses, weights, TensorArg(4)
        args = *tensors(0, 1, 2), *outs, cut.packed, _entropy(call), Errors()
        every.append(launch(FAMILY, "entropy_rows", "f32", cut.grid, *args, threads=cut.threads))
    args = losses, weights, parts, rows
    every.append(launch(FAMILY, "entropy_parts", "f32", (blocks, 1, 1), *args))
    args = *tensors(3, 5), blocks, call.size(0)
    every.append(launch(FAMILY, "entropy_total", "f32", (1, 1, 1), parts, *args))
    return Plan(tuple(every), 8 * rows + 16 * blocks)


@launches("cross_entropy_backward")
def cross_entropy_backward(call: CallSpec) -> Plan:
    """One pass over x; the weights of all classes are added up before, where that is wanted."""
    if not call.numel():
        return Plan()
    cut, every = _samples(call), []
    summed = call.numel(2) > 0 and call.option(0) > 0
    if summed:
        every.append(
            launch(FAMILY, "entropy_weights", "f32", (1, 1, 1), TensorArg(2), Scratch(0), cut.n)
        )
    weights = Scratch(0) if summed else TensorArg(2)
    args = *tensors(*range(7)), weights, cut.packed, _entropy(call), Errors()
    name = "cross_entropy_backward"
    every.append(launch(FAMILY, name, "f32", cut.grid, *args, threads=cut.threads))
    return Plan(tuple(every), 4 if summed else 0)


@launches("mse")
def mse(call: CallSpec) -> Plan:
    """Squares by themselves, or parts of their sum and then that."""
    n = call.numel()
    if call.size(0) == NONE:
        return single_launch(FAMILY, call, over(n), *tensors(0, 1, 2), n, kernel="mse_each")
    blocks = max(1, min(-(-n // _EACH), 4 * _PARTS))
    divisor = float(n if call.size(0) == MEAN else 1)
    some = launch(FAMILY, "mse_parts", "f32", (blocks, 1, 1), *tensors(0, 1), Scratch(0), n)
    args = Scratch(0), TensorArg(2), blocks, divisor
    return Plan((some, launch(FAMILY, "mse_total", "f32", (1, 1, 1), *args)), 8 * blocks)


@launches("mse_backward")
def mse_backward(call: CallSpec) -> Plan:
    """One pass."""
    n = call.numel()
    if not n:
        return Plan()
    divisor = float(n if call.size(0) == MEAN else 1)
    args = n, divisor, int(call.size(0) == NONE)
    return single_launch(FAMILY, call, over(n), *tensors(0, 1, 2, 3), *args)
