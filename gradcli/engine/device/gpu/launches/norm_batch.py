"""Launches of batch norm over the channels of (N, C, L), and its gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import CallSpec, Draft, launches, over, tensors
from gradcli.engine.device.gpu.lines import Lines, lines_of, parts

_RUNNING = struct.Struct("4f2I")


def channels(call: CallSpec) -> tuple[Lines, tuple[int, int]]:
    """A line is a channel; its numbers lie side by side, or where L is 1 the channels do.

    With them C and L, as kernels divide by them.
    """
    samples, count, length = call.tensors[0].shape
    cut = lines_of(count, samples * length, count if length == 1 else 1)
    return cut, (max(1, count), max(1, length))


def _normal(call: Draft, y: int, mean: int, rstd: int) -> None:
    if call.has(0):
        cut, sizes = channels(call)
        args = *tensors(0, 1, 2, y, mean, rstd), cut.packed, *sizes, call.has(1), call.has(2)
        call.launch("channel_normal", cut.grid, *args)


@launches("batch_norm_train")
def train(call: Draft) -> None:
    """Parts of the sums of each channel, then its moments, then one pass over x."""
    cut, sizes = channels(call)
    back, sums = parts(cut), call.scratch(16 * cut.results * cut.chunks)
    momentum = call.option(1) if cut.n else 0.0
    rates = call.option(0), momentum, 1 - momentum
    running = _RUNNING.pack(cut.n, *rates, call.has(6), call.has(7))
    call.launch("channel_squares", cut.grid, *tensors(0), sums, cut.packed, *sizes)
    args = sums, *tensors(0, 4, 5, 6, 7), back.packed, running, sizes[1]
    call.launch("channel_moments", back.grid, *args)
    _normal(call, 3, 4, 5)


@launches("batch_norm_eval")
def evaluate(call: Draft) -> None:
    """1 / deviation of each channel, then one pass over x."""
    count = call.tensors[0].shape[1]
    args = *tensors(3, 4, 6, 7), count, call.option(0)
    call.launch("channel_running", over(count), *args)
    _normal(call, 5, 6, 7)


@launches("batch_norm_backward")
def backward(call: Draft) -> None:
    """Parts of the sums of each channel, then what comes of them, then one pass over x."""
    cut, sizes = channels(call)
    back, sums = parts(cut), call.scratch(16 * cut.results * cut.chunks)
    shares = call.pair(cut.results)
    call.launch("channel_slopes", cut.grid, *tensors(0, 1, 2), sums, cut.packed, *sizes)
    args = sums, *tensors(3, 6, 7), *shares, back.packed, float(cut.n), call.size(0) != 0
    call.launch("channel_gradients", back.grid, *args)
    if call.has(0):
        args = *tensors(*range(6)), *shares, cut.packed, *sizes, call.has(4)
        call.launch("channel_backward", cut.grid, *args)
