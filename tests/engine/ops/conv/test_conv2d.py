"""Convolutions of all shapes against the sum of their taps, written with slices and products."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import cpu

# images, groups, channels and filters of a group, image, window, stride, padding, dilation. Planes
# narrower and wider than vectors and whole numbers of them, chunks of rows, padding that whole
# windows lie in, strides that skip pixels, one channel and many; then narrow planes of several
# images at a time, sums that are cut into blocks, a window of more taps than are looked up.
SHAPES = [
    (2, 1, 16, 13, (16, 32), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 1, 5, 16, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 4, 33, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 3, 4, (16, 32), (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 1, 6, 5, (17, 31), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 1, 4, 9, (16, 16), (1, 1), (2, 2), (0, 0), (1, 1)),
    (2, 1, 7, 12, (9, 10), (1, 1), (1, 1), (0, 0), (1, 1)),
    (33, 1, 1, 6, (5, 6), (2, 3), (1, 1), (0, 1), (1, 1)),
    (1, 2, 3, 5, (12, 20), (4, 5), (3, 2), (4, 6), (2, 3)),
    (2, 1, 2, 2, (9, 40), (7, 7), (2, 3), (3, 3), (1, 1)),
    (1, 1, 2, 3, (40, 70), (3, 3), (1, 1), (9, 9), (9, 9)),
    (1, 1, 2, 3, (7, 8), (2, 2), (4, 5), (2, 1), (2, 5)),
    (1, 1, 40, 2, (70, 80), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 6, 1, 1, (10, 16), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 5, 1, 1, (11, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 3, 1, 2, (20, 9), (5, 3), (1, 2), (2, 2), (1, 2)),
    (1, 1, 2, 3, (1, 1), (3, 3), (2, 2), (1, 1), (1, 1)),
    (19, 1, 20, 17, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    (5, 2, 17, 33, (5, 7), (3, 5), (1, 1), (1, 2), (1, 1)),
    (8, 1, 26, 16, (9, 6), (2, 3), (1, 1), (3, 2), (2, 2)),
    (4, 1, 90, 140, (6, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    (4, 1, 140, 150, (4, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 1, 130, 70, (20, 18), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 3, 4, (10, 11), (9, 8), (1, 1), (4, 4), (1, 1)),
]


def normal(*shape: int) -> Any:
    numbers = [math.sin(1.7 * i) + math.cos(0.31 * i * i) for i in range(math.prod(shape))]
    return engine.tensor(numbers, dtype=engine.float64).reshape(shape)


def by_taps(x: Any, weight: Any, shape: tuple[Any, ...], size: tuple[int, int]) -> Any:
    """The outputs (images, groups, filters, rows * columns) from a padded x, tap by tap."""
    n, groups, channels, filters, _, window, stride, _, dilation = shape
    y: Any = 0
    for i in range(window[0]):
        for j in range(window[1]):
            rows = slice(i * dilation[0], i * dilation[0] + (size[0] - 1) * stride[0] + 1)
            columns = slice(j * dilation[1], j * dilation[1] + (size[1] - 1) * stride[1] + 1)
            pixels = x[:, :, rows, columns][:, :, :: stride[0], :: stride[1]]
            tap = weight[:, :, i, j].reshape((1, groups, filters, channels))
            y = y + tap.matmul(pixels.reshape((n, groups, channels, size[0] * size[1])))
    return y


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolution_and_its_gradients_are_the_sum_of_the_taps(
    isa: str, shape: tuple[Any, ...]
) -> None:
    n, groups, channels, filters, (h, w), window, stride, padding, dilation = shape
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    inside = (slice(None), slice(None), slice(padding[0], padding[0] + h))
    inside = (*inside, slice(padding[1], padding[1] + w))
    outer = engine.zeros((n, groups * channels, h + 2 * padding[0], w + 2 * padding[1]))
    outer = outer.to(engine.float64)
    outer[inside] = normal(n, groups * channels, h, w)
    outer.requires_grad = True
    x, weight = outer.detach()[inside].contiguous(), normal(groups * filters, channels, *window)
    x.requires_grad = weight.requires_grad = True
    y = engine.conv2d(x, weight, **options)
    up = normal(*y.shape)
    (y * up).sum().backward()
    fast, weight.grad = weight.grad, None
    reference = by_taps(outer, weight, shape, y.shape[2:]).reshape(y.shape)
    (reference * up).sum().backward()
    assert largest(y - reference) < 1e-11
    assert largest(x.grad - outer.grad[inside]) < 1e-11
    assert largest(fast - weight.grad) < 1e-9
    assert largest(in_floats(x, weight, **options) - y) < 1e-3


def in_floats(x: Any, weight: Any, **options: Any) -> Any:
    y = engine.conv2d(x.detach().to(engine.float32), weight.detach().to(engine.float32), **options)
    return y.to(engine.float64)


def largest(x: Any) -> float:
    return float(x.detach().abs().max().item())


@pytest.mark.parametrize("shape", [*SHAPES[:6], *SHAPES[17:]], ids=str)
def test_the_bits_do_not_depend_on_the_number_of_threads(shape: tuple[Any, ...]) -> None:
    n, groups, channels, filters, image, window, stride, padding, dilation = shape
    threads, seen = cpu.threads(), set()
    for wanted in (1, 2, 3, 4):
        cpu.set_threads(wanted)
        x = normal(n, groups * channels, *image).to(engine.float32)
        weight = normal(groups * filters, channels, *window).to(engine.float32)
        x.requires_grad = weight.requires_grad = True
        y = engine.conv2d(
            x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        (y * y).sum().backward()
        seen.add(tuple(bytes(t.detach().memoryview()) for t in (y, x.grad, weight.grad)))
    cpu.set_threads(threads)
    assert len(seen) == 1


@pytest.mark.parametrize("f", ["relu", "tanh", "neg", "relu_backward", "gelu_backward"])
@pytest.mark.parametrize("shape", [SHAPES[i] for i in (0, 1, 8, 12, 17, 18)], ids=str)
def test_a_row_behind_a_convolution_has_the_bits_of_its_own_call(
    isa: str, f: str, shape: tuple[Any, ...]
) -> None:
    n, groups, channels, filters, image, window, stride, padding, dilation = shape
    x = normal(n, groups * channels, *image).to(engine.float32)
    weight = normal(groups * filters, channels, *window).to(engine.float32)
    bias, nothing = normal(groups * filters).to(engine.float32).array, empty((0,), engine.float32)
    y = engine.conv2d(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    sizes = (*stride, *padding, *dilation, groups)
    pre, out, wanted = (empty(y.shape, y.dtype) for _ in range(3))
    kept = normal(*y.shape).to(engine.float32).array if f.endswith("_backward") else nothing
    run("conv2d_forward", x.array, weight.array, bias, pre, sizes=sizes)
    run(f, *([kept] if kept.numel else []), pre, wanted)
    for asked in (nothing, empty(y.shape, y.dtype)):
        given = (x.array, weight.array, bias, kept)
        run("conv2d_forward_then", *given, asked, out, sizes=(*sizes, 0, cpu.KERNELS[f]))
        assert bits(out) == bits(wanted)
        assert asked is nothing or bits(asked) == bits(pre)


def bits(x: Array) -> bytes:
    return bytes(engine.Tensor(x).memoryview())


def test_what_lies_in_the_padding_is_not_read_from_the_neighbours() -> None:
    """A NaN reaches the outputs whose windows it lies in, and no others."""
    images = engine.ones((3, 4, 8, 8))
    images[1, 2, 7, 7] = math.nan
    y = engine.conv2d(images, engine.ones((2, 4, 3, 3)), padding=1)
    hit = [i for i, v in enumerate(y.reshape((3, 2, 64)).tolist()[1][0]) if math.isnan(v)]
    assert hit == [6 * 8 + 6, 6 * 8 + 7, 7 * 8 + 6, 7 * 8 + 7]
    assert not any(math.isnan(v) for n in (0, 2) for v in y[n].reshape((128,)).tolist())


def test_the_bias_gradient_sums_in_double() -> None:
    bias = engine.zeros(3, requires_grad=True)
    y = engine.conv2d(engine.ones((40, 1, 50, 60)), engine.ones((3, 1, 1, 1)), bias)
    (y * 0.1).sum().backward()
    nearest = engine.tensor([0.1]).to(engine.float64) * 120_000
    assert bias.grad.tolist() == [nearest.to(engine.float32).item()] * 3
