"""Launches of batch norm over the channels of (N, C, L), and its gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Launch,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    over,
    step,
)
from gradcli.engine.device.gpu.lines import Lines, lines_of, parts

FAMILY = "norm_batch"
_RUNNING = struct.Struct("4f2I")


def _channels(call: Shapes) -> Lines:
    """A line is a channel; its numbers lie side by side, or where L is 1 the channels do."""
    samples, channels, length = call.tensors[0].shape
    return lines_of(channels, samples * length, channels if length == 1 else 1)


def _sizes(call: Shapes) -> tuple[int, int]:
    """C and L, as kernels divide by them."""
    _, channels, length = call.tensors[0].shape
    return max(1, channels), max(1, length)


def _given(call: Shapes, *tensors: int) -> tuple[int, ...]:
    """Whether they have elements."""
    return tuple(int(call.numel(i) > 0) for i in tensors)


def _normal(call: Shapes, y: int, mean: int, rstd: int) -> tuple[Launch, ...]:
    if not call.numel():
        return ()
    cut, outs = _channels(call), (Tensor(y), Tensor(mean), Tensor(rstd))
    args = *_sizes(call), *_given(call, 1, 2)
    return (step(FAMILY, "channel_normal", "f32", cut.grid, *first(3), *outs, cut.packed, *args),)


@launches("batch_norm_train")
def train(call: Shapes) -> Plan:
    """Parts of the sums of each channel, then its moments, then one pass over x."""
    cut = _channels(call)
    if not cut.results:
        return Plan()
    back, n = parts(cut), float(cut.n)
    momentum = call.option(1) if cut.n else 0.0
    running = _RUNNING.pack(n, call.option(0), momentum, 1 - momentum, *_given(call, 6, 7))
    sizes = _sizes(call)
    sums = step(
        FAMILY, "channel_squares", "f32", cut.grid, Tensor(0), Scratch(0), cut.packed, *sizes
    )
    kept = Tensor(4), Tensor(5), Tensor(6), Tensor(7)
    moments = step(
        FAMILY,
        "channel_moments",
        "f32",
        back.grid,
        *(Scratch(0), Tensor(0), *kept, back.packed, running, sizes[1]),
    )
    return Plan((sums, moments, *_normal(call, 3, 4, 5)), 16 * cut.results * cut.chunks)


@launches("batch_norm_eval")
def evaluate(call: Shapes) -> Plan:
    """1 / deviation of each channel, then one pass over x."""
    channels = call.tensors[0].shape[1]
    if not channels:
        return Plan()
    tensors = Tensor(3), Tensor(4), Tensor(6), Tensor(7)
    args = channels, call.option(0)
    kept = step(FAMILY, "channel_running", "f32", over(channels), *tensors, *args)
    return Plan((kept, *_normal(call, 5, 6, 7)))


@launches("batch_norm_backward")
def backward(call: Shapes) -> Plan:
    """Parts of the sums of each channel, then what comes of them, then one pass over x."""
    cut = _channels(call)
    if not cut.results:
        return Plan()
    back, sizes, held = parts(cut), _sizes(call), 16 * cut.results * cut.chunks
    shares = Scratch(held), Scratch(held + 4 * cut.results)
    to = Scratch(0), cut.packed
    sums = step(FAMILY, "channel_slopes", "f32", cut.grid, *first(3), *to, *sizes)
    training = int(call.size(0) != 0)
    gradients = step(
        FAMILY,
        "channel_gradients",
        "f32",
        back.grid,
        *(Scratch(0), Tensor(3), Tensor(6), Tensor(7), *shares),
        *(back.packed, float(cut.n), training),
    )
    every = [sums, gradients]
    if call.numel():
        args = *shares, cut.packed, *sizes, int(call.numel(4) > 0)
        every.append(step(FAMILY, "channel_backward", "f32", cut.grid, *first(6), *args))
    return Plan(tuple(every), held + 8 * cut.results)
