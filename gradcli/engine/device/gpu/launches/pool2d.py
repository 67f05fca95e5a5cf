"""Launches of pooling, and of planes in another size."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Arg, Draft, launches, over, tensors

WIDE = 64  # pixels of a window from which on a block does it
_POOL = struct.Struct("4I8iI")
_AVERAGE = struct.Struct("If")
_RESIZE = struct.Struct("5I2f")
_ONE_PIXEL = (1, 1, 1, 1, 0, 0, 1, 1)  # what an adaptive window has as its size


def _planes(call: Draft, first: int, second: int) -> tuple[int, ...]:
    """Rows and columns of two tensors."""
    return *call.tensors[first].shape[1:], *call.tensors[second].shape[1:]


def _pool(call: Draft, big: int, small: int, adaptive: bool) -> bytes:
    """A struct Pool (csrc/gpu/conv/pool2d.h)."""
    sizes = _ONE_PIXEL if adaptive else tuple(call.size(i) for i in range(8))
    return _POOL.pack(*_planes(call, big, small), *sizes, adaptive)


@launches("max_pool2d_forward", "adaptive_max_pool2d_forward")
def max_forward(call: Draft) -> None:
    """Maxima and where they lie."""
    shape = _pool(call, 0, 1, call.kernel.startswith("adaptive"))
    _windows(call, "max_pool2d", *tensors(0, 1, 2), shape)


@launches("max_pool2d_backward")
def max_backward(call: Draft) -> None:
    """Each window's gradient to where its maximum lies; windows of one pixel may be adaptive."""
    n = call.numel(2)
    adaptive = tuple(call.size(i) for i in range(8)) == _ONE_PIXEL
    shape = _pool(call, 2, 0, adaptive)
    call.launch("max_pool2d_backward", over(n), *tensors(0, 1, 2), shape, n)


@launches("avg_pool2d_forward", "adaptive_avg_pool2d_forward")
def avg_forward(call: Draft) -> None:
    """Averages."""
    _windows(call, "avg_pool2d", *tensors(0, 1), _average(call, 0, 1))


def _windows(call: Draft, kernel: str, *args: Arg) -> None:
    """A thread for each output, or a block where windows are large."""
    n, pixels = call.numel(1), call.size(0) * call.size(1)
    if call.kernel.startswith("adaptive") and n:
        pixels = call.numel(0) // n
    if pixels < WIDE:
        call.launch(kernel, over(n), *args, n)
    else:
        threads = 256 if pixels > 8 * WIDE else 32
        call.launch(f"{kernel}_block", (n, 1, 1), *args, threads=threads)


@launches("avg_pool2d_backward", "adaptive_avg_pool2d_backward")
def avg_backward(call: Draft) -> None:
    """Each window's gradient to all of its pixels."""
    n = call.numel(1)
    call.launch("avg_pool2d_backward", over(n), *tensors(0, 1), _average(call, 1, 0), n)


def _average(call: Draft, big: int, small: int) -> bytes:
    """A struct Average (csrc/gpu/conv/pool2d.gc)."""
    adaptive = call.kernel.startswith("adaptive")
    padding, divisor = (0, 0) if adaptive else (call.size(8), call.size(9))
    return _pool(call, big, small, adaptive) + _AVERAGE.pack(padding, divisor)


@launches("resize_forward", "resize_backward")
def resize(call: Draft) -> None:
    """Each output from the pixels around its place; backward what each pixel has given to some."""
    n, ends = call.numel(1), (0, 1) if call.kernel == "resize_forward" else (1, 0)
    shape = _RESIZE.pack(*_planes(call, *ends), call.size(0), call.option(0), call.option(1))
    call.launch(call.kernel, over(n), *tensors(0, 1), shape, n, family="resize")
