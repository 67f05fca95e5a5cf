"""Launches of batch norm over the channels of (N, C, L), and its gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    tensors,
)
from gradcli.engine.device.gpu.lines import Lines, lines_of, parts

FAMILY = "norm_batch"
_RUNNING = struct.Struct("4f2I")


def _channels(call: CallSpec) -> Lines:
    """A line is a channel; its numbers lie side by side, or where L is 1 the channels do."""
    samples, channels, length = call.tensors[0].shape
    return lines_of(channels, samples * length, channels if length == 1 else 1)


def _sizes(call: CallSpec) -> tuple[int, int]:
    """C and L, as kernels divide by them."""
    _, channels, length = call.tensors[0].shape
    return max(1, channels), max(1, length)


def _given(call: CallSpec, *numbers: int) -> tuple[int, ...]:
    """Whether they have elements."""
    return tuple(int(call.numel(i) > 0) for i in numbers)


def _normal(call: CallSpec, y: int, mean: int, rstd: int) -> tuple[Launch, ...]:
    if not call.numel():
        return ()
    cut, outs = _channels(call), tensors(y, mean, rstd)
    args = *tensors(0, 1, 2), *outs, cut.packed, *_sizes(call), *_given(call, 1, 2)
    return (launch(FAMILY, "channel_normal", "f32", cut.grid, *args),)


@launches("batch_norm_train")
def train(call: CallSpec) -> Plan:
    """Parts of the sums of each channel, then its moments, then one pass over x."""
    cut = _channels(call)
    if not cut.results:
        return Plan()
    back, n = parts(cut), float(cut.n)
    momentum = call.option(1) if cut.n else 0.0
    running = _RUNNING.pack(n, call.option(0), momentum, 1 - momentum, *_given(call, 6, 7))
    sizes = _sizes(call)
    args = *tensors(0), Scratch(0), cut.packed, *sizes
    sums = launch(FAMILY, "channel_squares", "f32", cut.grid, *args)
    kept = tensors(4, 5, 6, 7)
    args = Scratch(0), TensorArg(0), *kept, back.packed, running, sizes[1]
    moments = launch(FAMILY, "channel_moments", "f32", back.grid, *args)
    return Plan((sums, moments, *_normal(call, 3, 4, 5)), 16 * cut.results * cut.chunks)


@launches("batch_norm_eval")
def evaluate(call: CallSpec) -> Plan:
    """1 / deviation of each channel, then one pass over x."""
    channels = call.tensors[0].shape[1]
    if not channels:
        return Plan()
    args = *tensors(3, 4, 6, 7), channels, call.option(0)
    kept = launch(FAMILY, "channel_running", "f32", over(channels), *args)
    return Plan((kept, *_normal(call, 5, 6, 7)))


@launches("batch_norm_backward")
def backward(call: CallSpec) -> Plan:
    """Parts of the sums of each channel, then what comes of them, then one pass over x."""
    cut = _channels(call)
    if not cut.results:
        return Plan()
    back, sizes, held = parts(cut), _sizes(call), 16 * cut.results * cut.chunks
    shares = Scratch(held), Scratch(held + 4 * cut.results)
    to = Scratch(0), cut.packed
    sums = launch(FAMILY, "channel_slopes", "f32", cut.grid, *tensors(0, 1, 2), *to, *sizes)
    training = int(call.size(0) != 0)
    args = Scratch(0), *tensors(3, 6, 7), *shares, back.packed, float(cut.n), training
    gradients = launch(FAMILY, "channel_gradients", "f32", back.grid, *args)
    every = [sums, gradients]
    if call.numel():
        args = *tensors(*range(6)), *shares, cut.packed, *sizes, int(call.numel(4) > 0)
        every.append(launch(FAMILY, "channel_backward", "f32", cut.grid, *args))
    return Plan(tuple(every), held + 8 * cut.results)
