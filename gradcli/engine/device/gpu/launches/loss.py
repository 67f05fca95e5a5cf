"""Launches of cross-entropy, the mean squared error, and their gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Arg,
    Errors,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    over,
    step,
    words,
)
from gradcli.engine.device.gpu.lines import Lines, lines

FAMILY = "loss"
NONE, MEAN = 0, 1  # reductions; the third is the sum
_ENTROPY = struct.Struct("5If")
_PARTS = 256  # blocks of a sum over all rows, at most
_EACH = 4096  # rows of a block, at least
_WIDE = 4096  # classes from which on more threads share a row


def _entropy(call: Shapes) -> bytes:
    """sizes: reduction, the target to ignore, 1 for logarithms; options: label smoothing."""
    weighted = int(call.numel(2) > 0)
    return _ENTROPY.pack(
        call.size(0), int(call.size(2) != 0), weighted, *words(call.size(1)), call.option(0)
    )


def _samples(call: Shapes) -> Lines:
    """A line is a row of x."""
    wide = call.tensors[0].shape[1] > _WIDE
    return lines(call.tensors[0], threads=1024 if wide else 256, cut=False)


@launches("cross_entropy")
def cross_entropy(call: Shapes) -> Plan:
    """Each row by itself, then parts of the sums over all rows, then the sums."""
    cut = _samples(call)
    rows = cut.results
    blocks = max(1, min(-(-rows // _EACH), _PARTS))
    losses: Arg = Tensor(3) if call.size(0) == NONE else Scratch(0)
    weights, parts = Scratch(4 * rows), Scratch(8 * rows)
    every = []
    if rows:
        outs = losses, weights, Tensor(4)
        call_of = cut.packed, _entropy(call), Errors()
        rows_of = step(
            FAMILY, "entropy_rows", "f32", cut.grid, *first(3), *outs, *call_of, threads=cut.threads
        )
        every.append(rows_of)
    every.append(step(FAMILY, "entropy_parts", "f32", (blocks, 1, 1), losses, weights, parts, rows))
    args = Tensor(3), Tensor(5), blocks, call.size(0)
    every.append(step(FAMILY, "entropy_total", "f32", (1, 1, 1), parts, *args))
    return Plan(tuple(every), 8 * rows + 16 * blocks)


@launches("cross_entropy_backward")
def cross_entropy_backward(call: Shapes) -> Plan:
    """One pass over x; the weights of all classes are added up before, where that is wanted."""
    if not call.numel():
        return Plan()
    cut, every = _samples(call), []
    summed = call.numel(2) > 0 and call.option(0) > 0
    if summed:
        every.append(
            step(FAMILY, "entropy_weights", "f32", (1, 1, 1), Tensor(2), Scratch(0), cut.n)
        )
    tensors = *first(7), Scratch(0) if summed else Tensor(2)
    args, threads = (cut.packed, _entropy(call), Errors()), cut.threads
    name = "cross_entropy_backward"
    every.append(step(FAMILY, name, "f32", cut.grid, *tensors, *args, threads=threads))
    return Plan(tuple(every), 4 if summed else 0)


@launches("mse")
def mse(call: Shapes) -> Plan:
    """Squares by themselves, or parts of their sum and then that."""
    n = call.numel()
    if call.size(0) == NONE:
        return Plan((step(FAMILY, "mse_each", "f32", over(n), *first(3), n),) if n else ())
    blocks = max(1, min(-(-n // _EACH), 4 * _PARTS))
    divisor = float(n if call.size(0) == MEAN else 1)
    some = step(FAMILY, "mse_parts", "f32", (blocks, 1, 1), *first(2), Scratch(0), n)
    args = Scratch(0), Tensor(2), blocks, divisor
    return Plan((some, step(FAMILY, "mse_total", "f32", (1, 1, 1), *args)), 8 * blocks)


@launches("mse_backward")
def mse_backward(call: Shapes) -> Plan:
    """One pass."""
    n = call.numel()
    if not n:
        return Plan()
    divisor = float(n if call.size(0) == MEAN else 1)
    args = n, divisor, int(call.size(0) == NONE)
    return Plan((step(FAMILY, "mse_backward", "f32", over(n), *first(4), *args),))
