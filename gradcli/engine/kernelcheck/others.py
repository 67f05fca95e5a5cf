"""Calls of kernels that no declared op makes: optimizers, clipping, and rows fused with others."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from gradcli import engine
from gradcli.engine import optim
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.kernelcheck import tiles
from gradcli.engine.kernelcheck.calls import CheckedCall, Collector
from gradcli.engine.kernelcheck.samples import TAILS
from gradcli.engine.kernelcheck.tiles import wave
from gradcli.engine.program.chain import Instruction, packed
from gradcli.engine.tensor import Tensor

# Each kernel of a step, with the options that choose it or that it reads.
OPTIMIZERS: list[tuple[Callable[..., optim.Optimizer], dict[str, Any]]] = [
    (optim.SGD, {}),
    (optim.SGD, {"weight_decay": 0.1, "maximize": True}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (optim.Adam, {}),
    (optim.Adam, {"weight_decay": 0.1, "maximize": True}),
    (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {"weight_decay": 0.1}),
    (optim.AdamW, {"weight_decay": 0.1, "amsgrad": True}),
    (optim.NAdam, {"weight_decay": 0.1}),
    (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, {"weight_decay": 0.1}),
    (optim.RAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    (optim.RMSprop, {"weight_decay": 0.1}),
    (optim.RMSprop, {"momentum": 0.9}),
    (optim.RMSprop, {"centered": True}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9, "maximize": True}),
    (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.Adagrad, {"maximize": True}),
    (optim.Adadelta, {"weight_decay": 0.1}),
    (optim.Adadelta, {"maximize": True}),
    (optim.Lion, {"weight_decay": 0.1}),
    (optim.Lion, {"maximize": True}),
]
STEPS = 7  # RAdam changes its rule after five
PRODUCTS = ((1, 1, 1, 1), (1, 5, 33, 257), (2, 31, 7, 33), (1, 70, 300, 20), (3, 4, 0, 5))
WHOLE = (engine.int64, engine.int32, engine.uint8, engine.bool_)
CONVOLUTIONS = (
    (1, 1, 1, 1, (5, 5), (1, 1), 1),
    (2, 1, 3, 7, (9, 6), (3, 2), 1),
    (3, 2, 2, 5, (8, 11), (3, 3), 2),
    (2, 6, 1, 1, (7, 7), (3, 3), 1),
    (1, 1, 33, 17, (6, 5), (3, 3), 1),
    (1, 1, 3, 18, (6, 5), (2, 2), 1),
)
BEHIND = ("relu", "gelu", "gelu_backward")  # products: each is compiled with every tile
ROUNDED = "gelu_backward"  # on tensor cores
ROWS = ("relu", "gelu", "tanh", "sigmoid_backward", "gelu_backward", "clamp", "neg", "floor")


def _steps(make: Callable[..., optim.Optimizer], options: dict[str, object], size: int) -> None:
    parameter = engine.nn.Parameter(wave((size,)))
    optimizer = make([parameter], lr=0.01, **options)
    for step in range(STEPS):
        parameter.grad = wave((size,), step + 1.0)
        optimizer.step()


def _clipped(size: int) -> None:
    parameters = [engine.nn.Parameter(wave((n,))) for n in (size, 5)]
    for norm in (0.5, 1e6):
        for parameter in parameters:
            parameter.grad = wave(parameter.shape, 2.0)
        optim.clip_grad_norm_(parameters, norm)
        optim.clip_grad_value_(parameters, 0.25)


def _products(row: str) -> None:
    for batch, m, k, n in PRODUCTS:
        a, b, bias = wave((batch, m, k)), wave((batch, k, n), 1.0, terms=k), wave((n,), 2.0)
        values, out = wave((batch, m, n), 3.0), empty((batch, m, n), engine.float32)
        none, before = empty((0,), engine.float32), empty((batch, m, n), engine.float32)
        read = values.array if FACTS[row].unary_slope else none
        sides: list[tuple[Tensor, Tensor, tuple[float, ...]]] = [(a, b, (0.25, 1.5))]
        if row == ROUNDED:
            turned_a = wave((batch, k, m)).transpose(1, 2)
            turned_b = wave((batch, n, k), 1.0, terms=k).transpose(1, 2)
            sides += [(x, y, (0.25, 1.5, 1.0)) for x in (a, turned_a) for y in (b, turned_b)]
        for x, y, options in sides:
            for start in (bias.array, none):
                for pre in (before, none):
                    tensors = (x.array, y.array, start, read, pre, out)
                    run("matmul_then", *tensors, sizes=(cpu.KERNELS[row],), options=options)


def _convolutions(row: str) -> None:
    for images, groups, channels, filters, size, window, step in CONVOLUTIONS:
        x = wave((images, groups * channels, *size))
        taps = channels * math.prod(window)
        weight = wave((groups * filters, channels, *window), 1.0, terms=taps)
        bias = wave((groups * filters,))
        options = (step, step, 1, 0, 1, 1, groups)
        y = engine.conv2d(x, weight, stride=step, padding=(1, 0), groups=groups)
        none, out, before = (empty(n, y.dtype) for n in ((0,), y.shape, y.shape))
        read = wave(y.shape, 3.0).array if FACTS[row].unary_slope else none
        for pre in (before, none):
            tensors = (x.array, weight.array, bias.array, read, pre, out)
            sizes = (*options, 0, cpu.KERNELS[row])
            for numbers in ((0.25, 1.5), (0.25, 1.5, 1.0))[: 1 + (row == ROUNDED)]:
                run("conv2d_forward_then", *tensors, sizes=sizes, options=numbers)


def _chain(row: str) -> None:
    """A row on a broadcast input, its result kept and used again."""
    for shape in ((1, 1), (3, 31), (33, 7), (1, 1000)):
        x, y = wave(shape), wave((1, shape[1]), 1.0).expand(shape)
        none, middle, out = (empty(n, engine.float32) for n in ((0,), shape, shape))
        steps = [Instruction("mul", (0, 1), 5), Instruction(row, (5, 5)[: FACTS[row].inputs], 8)]
        steps += [Instruction("add", (8, 0), 6)]
        tensors = (x.array, y.array, none, none, none, middle, out, none)
        run("chain", *tensors, sizes=packed(steps), options=(0.25, 1.5, 3.0, 4.0))


def _long_rows() -> None:
    """Rows that a block does not keep in registers, or that several blocks share."""
    for shape in ((1, 70_001), (2, 9_000), (3, 5_001)):
        x = wave(shape).requires_grad_()
        weight, bias = wave((shape[1],), 1.0).requires_grad_(), wave((shape[1],), 2.0)
        largest, _ = x.max(1)
        for y in (x.sum(1), x.mean(), x.var(1), x.norm(dim=1), largest, x.amax(1), x.softmax(1)):
            y.backward(wave(y.shape, 3.0))
        y = x.log_softmax(1) * engine.layer_norm(x, (shape[1],), weight, bias)
        (y * y).mean().backward()
        classes = engine.tensor([7] * shape[0])
        engine.cross_entropy(x, classes, label_smoothing=0.1).backward()
        engine.mse_loss(x, wave(shape, 1.0)).backward()
        (x * 4).to(engine.int64).sum(1).max(0)
    x = (wave((5_000, 3)) + 1).requires_grad_()
    for y in (engine.batch_norm(x, None, None, training=True), x.softmax(0), x.log_softmax(0)):
        y.backward(wave(y.shape, 3.0))


def _long_orders() -> None:
    """Rows of several tiles, and rows picked so often that several threads add them up."""
    for size in (1_025, 5_000):
        engine.randperm(size)
        for x in (wave((2, size)), (wave((2, size)) * 5).to(engine.int64)):
            x.sort(1, descending=size == 5_000)
    for dtype in (engine.int32, engine.uint8):
        (wave((1, 2_500)) * 50 + 100).to(dtype).sort(1)
    for count, inner in ((700, 3), (3, 300)):
        x = wave((40, inner)).requires_grad_()
        rows = engine.tensor([i * i % 7 if i % 3 else 11 for i in range(count)])
        y = x.index_select(0, rows)
        y.backward(wave(y.shape, 1.0))
    for way in ("sum", "prod", "amax", "amin"):
        for size in (7, 900):
            rows = engine.tensor([i * i % 5 if i % 4 else 2 for i in range(size)])
            for x in (wave((9,)), (wave((9,)) * 3).to(engine.int64)):
                x.scatter_reduce(0, rows, wave((size,), 1.0).to(x.dtype) * 2, way)
    (wave((9_000,)) > 1).nonzero()
    x = wave((2, 5, 3)).requires_grad_()
    x.index_select(1, engine.tensor([4] * 50 + [1] * 50 + [0, 2])).sum().backward()


def _added_rows() -> None:
    rows = engine.tensor([i * i % 7 if i % 3 else 11 for i in range(400)])
    for x in (wave((2, 40, 3)), (wave((2, 40, 3)) * 3).to(engine.int64)):
        x.index_add(1, rows, wave((2, 400, 3), 1.0).to(x.dtype) * 2)


def _convolution_gradients() -> None:
    for images, groups, channels, filters, size, window, step in CONVOLUTIONS:
        x = wave((images, groups * channels, *size)).requires_grad_()
        weight = wave((groups * filters, channels, *window), 1.0).requires_grad_()
        bias = wave((groups * filters,)).requires_grad_()
        engine.conv2d(x, weight, bias, stride=step, padding=(1, 0), groups=groups).sum().backward()


def _casts() -> None:
    """Between all types, and of what the other type does not hold."""
    beyond = [3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), 2.0**63, 255.5, 256.0, -0.5]
    floats = engine.tensor([*beyond, math.inf, -math.inf, math.nan], dtype=engine.float32)
    whole = engine.tensor([0, 1, -1, 255, 256, 1 << 31, -(1 << 62), (1 << 63) - 1])
    bits = struct.pack(
        "8I", *(0x3F800000 + n for n in (0x7FFF, 0x8000, 0x8001, 0x18000, 1, 2, 3, 4))
    )
    ties = engine.frombuffer(bytearray(bits), dtype=engine.float32)
    half = floats.bfloat16()
    for source in (floats, ties, half, *(whole.to(dtype) for dtype in WHOLE)):
        for dtype in (engine.float32, engine.bfloat16, *WHOLE):
            source.to(dtype)
    for x in (floats, ties):
        run("bfloat16", x.array, empty(x.shape, x.dtype))
    half.clone(), half.reshape(13, 1).expand(13, 2).float(), half[::2].to(engine.bool_)
    engine.full((33,), 1 / 3, dtype=engine.bfloat16)


def _transposed() -> None:
    for dtype in (engine.bfloat16, *WHOLE):
        for shape in ((40, 70), (2, 33, 65)):
            x = (wave(shape) * 50).to(dtype)
            x.transpose(-2, -1).contiguous()


def _whole_reductions() -> None:
    for dtype in WHOLE:
        for shape in ((1000,), (33, 257), (1, 31)):
            x = (wave(shape) * 50).to(dtype)
            for dim in range(x.ndim):
                x.max(dim), x.min(dim), x.sum(dim)


def _bits() -> None:
    for dtype in WHOLE:
        x, y = ((wave((33,), shift) * 50).to(dtype) for shift in (0.0, 1.0))
        for combine in (engine.bitwise_and, engine.bitwise_or, engine.bitwise_xor):
            combine(x, y)


def _ranges() -> None:
    for dtype in (engine.float32, engine.int64, engine.int32, engine.uint8):
        for count in (1, 31, 97):
            out = empty((count,), dtype)
            run("arange", out, sizes=(3, 2), options=(0.5, 0.25))


def _draws() -> None:
    for size in (*TAILS, 64, 100):
        engine.rand(size), engine.randn(size), engine.randint(-3, 9, (size,)), engine.randperm(size)
        engine.dropout(wave((size,)).requires_grad_(), 0.3).sum().backward()


def _long_windows() -> None:
    """Where output times length needs more than 32 bits."""
    x = wave((1, 1, 1, 70_001)).requires_grad_()
    engine.adaptive_avg_pool2d(x, (1, 65_537)).sum().backward()


CALLERS: dict[str, Callable[[], None]] = {
    "long rows": _long_rows,
    "long orders": _long_orders,
    "added rows": _added_rows,
    "gradients of convolutions": _convolution_gradients,
    "casts": _casts,
    "bits": _bits,
    "ranges": _ranges,
    "transposed matrices of other types": _transposed,
    "draws": _draws,
    "adaptive windows beyond 32 bits": _long_windows,
    "large products": tiles.products,
    "products that may round": tiles.rounded,
    "large convolutions": tiles.convolutions,
    "large attention": tiles.attention,
    "large pools": tiles.pools,
    "reductions of whole numbers": _whole_reductions,
}


def other_calls(wants: Callable[[str], bool] = lambda kernel: True) -> dict[str, list[CheckedCall]]:
    """The calls of the wanted kernels, by kernel."""
    collector = Collector(wants, most=STEPS)
    for make, options in OPTIMIZERS:
        for size in TAILS:
            with collector.listening(f"{make.__name__}({options}) of {size}"):
                _steps(make, options, size)
    for size in TAILS:
        with collector.listening(f"clipping of {size}"):
            _clipped(size)
    for name, calls in CALLERS.items():
        with collector.listening(name):
            calls()
    for row in BEHIND:
        with collector.listening(f"a product, then {row}"):
            _products(row)
        with collector.listening(f"a convolution, then {row}"):
            _convolutions(row)
    for row in ROWS:
        with collector.listening(f"a chain with {row}"):
            _chain(row)
    return collector.calls
