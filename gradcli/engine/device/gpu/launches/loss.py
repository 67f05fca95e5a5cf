"""Launches of cross-entropy, the mean squared error, and their gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Arg, Draft, Errors, launches, over, tensors, words
from gradcli.engine.device.gpu.lines import Lines, lines

NONE, MEAN = 0, 1  # reductions; the third is the sum
_ENTROPY = struct.Struct("5If")
_PARTS = 256  # blocks of a sum over all rows, at most
_EACH = 4096  # rows of a block, at least
_WIDE = 4096  # classes from which on more threads share a row


def _entropy(call: Draft) -> bytes:
    """sizes: reduction, the target to ignore, 1 for logarithms; options: label smoothing."""
    flags = call.size(2) != 0, call.has(2)
    return _ENTROPY.pack(call.size(0), *flags, *words(call.size(1)), call.option(0))


def _samples(call: Draft) -> Lines:
    """A line is a row of x."""
    wide = call.tensors[0].shape[1] > _WIDE
    return lines(call.tensors[0], threads=1024 if wide else 256, cut=False)


@launches("cross_entropy")
def cross_entropy(call: Draft) -> None:
    """Each row by itself, then parts of the sums over all rows, then the sums."""
    cut = _samples(call)
    rows = cut.results
    blocks = max(1, min(-(-rows // _EACH), _PARTS))
    losses: Arg = call.scratch(4 * rows)
    weights, parts = call.scratch(4 * rows), call.scratch(16 * blocks)
    if call.size(0) == NONE:
        (losses,) = tensors(3)
    args = *tensors(0, 1, 2), losses, weights, *tensors(4), cut.packed, _entropy(call), Errors()
    call.launch("entropy_rows", cut.grid, *args, threads=cut.threads)
    call.launch("entropy_parts", (blocks, 1, 1), losses, weights, parts, rows)
    call.launch("entropy_total", (1, 1, 1), parts, *tensors(3, 5), blocks, call.size(0))


@launches("cross_entropy_backward")
def cross_entropy_backward(call: Draft) -> None:
    """One pass over x; the weights of all classes are added up before, where that is wanted."""
    if not call.has(0):
        return
    cut, (weights,) = _samples(call), tensors(2)
    if call.has(2) and call.option(0) > 0:
        weights = call.scratch(4)
        call.launch("entropy_weights", (1, 1, 1), *tensors(2), weights, cut.n)
    args = *tensors(*range(7)), weights, cut.packed, _entropy(call), Errors()
    call.launch(call.kernel, cut.grid, *args, threads=cut.threads)


@launches("mse")
def mse(call: Draft) -> None:
    """Squares by themselves, or parts of their sum and then that."""
    n = call.numel()
    if call.size(0) == NONE:
        call.launch("mse_each", over(n), *tensors(0, 1, 2), n)
        return
    blocks = max(1, min(-(-n // _EACH), 4 * _PARTS))
    parts = call.scratch(8 * blocks)
    call.launch("mse_parts", (blocks, 1, 1), *tensors(0, 1), parts, n)
    call.launch("mse_total", (1, 1, 1), parts, *tensors(2), blocks, _divisor(call))


@launches("mse_backward")
def mse_backward(call: Draft) -> None:
    """One pass."""
    n = call.numel()
    args = n, _divisor(call), call.size(0) == NONE
    call.launch("mse_backward", over(n), *tensors(0, 1, 2, 3), *args)


def _divisor(call: Draft) -> float:
    return float(call.numel() if call.size(0) == MEAN else 1)
