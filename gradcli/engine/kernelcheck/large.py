"""Calls that fill a large GPU, with as little work as that takes: they get the large tiles.

Tests reach the same kernels with small calls, by other limits (tests/gpu/settings.py).
"""

from __future__ import annotations

from collections.abc import Callable

from gradcli import engine
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu
from gradcli.engine.kernelcheck.calls import CheckedCall, Collector
from gradcli.engine.kernelcheck.tiles import may_round, wave
from gradcli.engine.tensor import Tensor

# A product for each of many blocks: 128 rows and columns, of which few are there, and 64.
BATCHES = ((132, 18, 4, 19), (40, 66, 3, 65))  # batch, m, k, n
GROUPS = ((132, 17, 17, (1, 2)), (34, 66, 66, (5, 13)))  # groups, channels and filters of each
WHOLE = (engine.int64, engine.int32, engine.uint8)
ROW = "gelu_backward"  # behind products


def _products() -> None:
    for batch, m, k, n in BATCHES:
        rows, columns = wave((batch, m, k)), wave((batch, k, n), 1.0, terms=k)
        for a in (rows, wave((batch, k, m)).transpose(1, 2)):
            for b in (columns, wave((batch, n, k), 1.0, terms=k).transpose(1, 2)):
                engine.bmm(a, b)
                _product_then(a, b, wave((batch, m, n), 3.0))


def _product_then(a: Tensor, b: Tensor, read: Tensor) -> None:
    none, out = empty((0,), engine.float32), empty(read.shape, engine.float32)
    tensors = (a.array, b.array, none, read.array, none, out)
    for options in ((0.25, 1.5), (0.25, 1.5, 1.0)):
        run("matmul_then", *tensors, sizes=(cpu.KERNELS[ROW],), options=options)


def _convolutions() -> None:
    for groups, channels, filters, size in GROUPS:
        x = wave((1, groups * channels, *size)).requires_grad_()
        weight = wave((groups * filters, channels, 1, 1), 1.0, terms=channels).requires_grad_()
        y = engine.conv2d(x, weight, groups=groups)
        y.backward(wave(y.shape, 3.0))
        none, out = empty((0,), engine.float32), empty(y.shape, engine.float32)
        read = wave(y.shape, 4.0).array
        tensors = (x.array, weight.array, none, read, none, out)
        sizes = (1, 1, 0, 0, 1, 1, groups, 0, cpu.KERNELS[ROW])
        for options in ((0.25, 1.5), (0.25, 1.5, 1.0)):
            run("conv2d_forward_then", *tensors, sizes=sizes, options=options)


def _rounded() -> None:
    """The same on tensor cores."""
    with may_round():
        _products()
        _convolutions()


def _long_rows() -> None:
    """Reductions and scans that several threads or blocks share."""
    x = wave((1_000, 5))
    x.max(0), x.min(0)
    y = (wave((3, 31)) + 1).requires_grad_().cumprod(1)
    y.backward(wave(y.shape, 1.0))
    y = (wave((3, 300)) * 0.01 + 1).requires_grad_().prod(1)
    y.backward(wave(y.shape, 1.0))
    for dtype in WHOLE:
        x = (wave((3_000, 3)) * 50 + 100).to(dtype)
        x.max(0), x.min(0), x.sum(0), x.prod(0), x[:, 0].contiguous().sum(0)
        row = x.reshape(1, 9_000, 1)
        for kernel in ("cumsum", "cumprod"):
            run(kernel, row.array, empty(row.shape, dtype))


LARGE: dict[str, Callable[[], None]] = {
    "products for every block": _products,
    "convolutions for every block": _convolutions,
    "products for every block, that may round": _rounded,
    "long rows": _long_rows,
}


def large_calls(wants: Callable[[str], bool] = lambda kernel: True) -> dict[str, list[CheckedCall]]:
    """The calls of the wanted kernels, by kernel."""
    collector = Collector(wants)
    for name, calls in LARGE.items():
        with collector.listening(name):
            calls()
    return collector.calls
