"""Launches of pooling, and of planes in another size."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Arg,
    CallSpec,
    Plan,
    launches,
    over,
    single_launch,
    tensors,
)

FAMILY, RESIZE = "pool2d", "resize"
WIDE = 64  # pixels of a window from which on a block does it
_POOL = struct.Struct("4I8iI")
_AVERAGE = struct.Struct("If")
_RESIZE = struct.Struct("5I2f")
_ONE_PIXEL = (1, 1, 1, 1, 0, 0, 1, 1)  # what an adaptive window has as its size


def _pool(call: CallSpec, big: int, small: int, adaptive: bool) -> bytes:
    """A struct Pool (csrc/gpu/conv/pool2d.h)."""
    (h, w), (oh, ow) = call.tensors[big].shape[1:], call.tensors[small].shape[1:]
    sizes = _ONE_PIXEL if adaptive else tuple(call.size(i) for i in range(8))
    return _POOL.pack(h, w, oh, ow, *sizes, adaptive)


@launches("max_pool2d_forward", "adaptive_max_pool2d_forward")
def max_forward(call: CallSpec) -> Plan:
    """Maxima and where they lie."""
    shape = _pool(call, 0, 1, call.kernel.startswith("adaptive"))
    return _windows(call, "max_pool2d", (*tensors(0, 1, 2), shape))


@launches("max_pool2d_backward")
def max_backward(call: CallSpec) -> Plan:
    """Each window's gradient to where its maximum lies; windows of one pixel may be adaptive."""
    n = call.numel(2)
    adaptive = tuple(call.size(i) for i in range(8)) == _ONE_PIXEL
    shape = _pool(call, 2, 0, adaptive)
    return single_launch(FAMILY, call, over(n), *tensors(0, 1, 2), shape, n)


@launches("avg_pool2d_forward", "adaptive_avg_pool2d_forward")
def avg_forward(call: CallSpec) -> Plan:
    """Averages."""
    return _windows(call, "avg_pool2d", (*tensors(0, 1), _average(call, 0, 1)))


def _windows(call: CallSpec, kernel: str, args: tuple[Arg, ...]) -> Plan:
    """A thread for each output, or a block where windows are large."""
    n = call.numel(1)
    pixels = call.size(0) * call.size(1)
    if call.kernel.startswith("adaptive") and n:
        pixels = call.numel(0) // n
    if pixels < WIDE:
        return single_launch(FAMILY, call, over(n), *args, n, kernel=kernel)
    grid, threads = (n, 1, 1), 256 if pixels > 8 * WIDE else 32
    return single_launch(FAMILY, call, grid, *args, kernel=f"{kernel}_block", threads=threads)


@launches("avg_pool2d_backward", "adaptive_avg_pool2d_backward")
def avg_backward(call: CallSpec) -> Plan:
    """Each window's gradient to all of its pixels."""
    n = call.numel(1)
    args = *tensors(0, 1), _average(call, 1, 0), n
    return single_launch(FAMILY, call, over(n), *args, kernel="avg_pool2d_backward")


def _average(call: CallSpec, big: int, small: int) -> bytes:
    """A struct Average (csrc/gpu/conv/pool2d.gc)."""
    adaptive = call.kernel.startswith("adaptive")
    padding, divisor = (0, 0) if adaptive else (call.size(8), call.size(9))
    return _pool(call, big, small, adaptive) + _AVERAGE.pack(padding, divisor)


@launches("resize_forward")
def resize_forward(call: CallSpec) -> Plan:
    """Each output from the pixels around its place."""
    n = call.numel(1)
    return single_launch(RESIZE, call, over(n), *tensors(0, 1), _resize(call, 0, 1), n)


@launches("resize_backward")
def resize_backward(call: CallSpec) -> Plan:
    """What each pixel has given to outputs."""
    n = call.numel(1)
    return single_launch(RESIZE, call, over(n), *tensors(0, 1), _resize(call, 1, 0), n)


def _resize(call: CallSpec, source: int, out: int) -> bytes:
    """A struct Resize (csrc/gpu/conv/resize.gc)."""
    (h, w), (oh, ow) = call.tensors[source].shape[1:], call.tensors[out].shape[1:]
    return _RESIZE.pack(h, w, oh, ow, call.size(0), call.option(0), call.option(1))
