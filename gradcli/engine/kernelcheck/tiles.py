"""Calls large enough for what few samples of ops reach: whole tiles, pieces, wide heads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradcli import engine
from gradcli.engine.kind import Sizes
from gradcli.engine.tensor import Tensor

# images, channels, filters, rows, columns, window, stride, padding, dilation, groups
_Convolution = tuple[int, int, int, int, int, tuple[int, int], Sizes, Sizes, Sizes, int]
CONVOLUTIONS: tuple[_Convolution, ...] = (
    (2, 8, 17, 9, 8, (3, 3), 1, 1, 1, 1),
    (1, 8, 10, 11, 9, (3, 2), (2, 3), 1, (1, 2), 2),
    (1, 20, 33, 9, 9, (3, 3), 4, 0, 1, 1),
    (2, 4, 8, 5, 5, (1, 1), 2, 0, 1, 1),
    (9, 2, 6, 14, 13, (3, 3), 1, 1, 1, 1),
    (1, 8, 40, 5, 4, (3, 3), 1, 1, 1, 1),
    (1, 32, 32, 4, 3, (1, 1), 1, 0, 1, 1),
)
# heads, queries, keys, depth, width, causal
HEADS = (
    (2, 17, 70, 5, 9, False),
    (1, 70, 70, 8, 70, True),
    (1, 66, 5, 3, 130, False),
    (2, 3, 130, 70, 4, False),
)
PRODUCTS = (
    ((70, 300), (300, 66)),
    ((130, 37), (37, 3)),
    ((3, 260), (260, 70)),
    ((40, 66, 3), (40, 3, 65)),
    ((1, 1000), (1000, 1)),
)
ROUNDED = (((70, 300), (300, 66)), ((3, 20, 5), (3, 5, 9)), ((1, 1000), (1000, 1)))


def wave(shape: tuple[int, ...], shift: float = 0.0, terms: int = 1) -> Tensor:
    """Numbers of both signs, the same each time; `terms` of them add up to something around 1."""
    numbers = [
        (math.sin(1.7 * i + shift) + math.cos(0.31 * i)) / max(terms, 1)
        for i in range(math.prod(shape))
    ]
    return engine.tensor(numbers, dtype=engine.float32).reshape(shape)


def convolutions() -> None:
    """With the gradients of images, filters and bias."""
    for images, channels, filters, h, w, window, stride, padding, dilation, groups in CONVOLUTIONS:
        taps = channels // groups * math.prod(window)
        x = wave((images, channels, h, w)).requires_grad_()
        weight = wave((filters, channels // groups, *window), 1.0, terms=taps).requires_grad_()
        bias = wave((filters,), 2.0).requires_grad_()
        y = engine.conv2d(
            x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        y.backward(wave(y.shape, 3.0, terms=y.numel() // filters))


def attention() -> None:
    """Of more than one tile of queries, keys or columns, with its gradients."""
    for heads, queries, keys, depth, width, causal in HEADS:
        q = wave((1, heads, queries, depth)).requires_grad_()
        k = wave((1, heads, keys, depth), 1.0).requires_grad_()
        v = wave((1, heads, keys, width), 2.0).requires_grad_()
        mask = None if causal else wave((queries, keys), 4.0) > -0.8
        y = engine.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        y.backward(wave(y.shape, 3.0))


def pools() -> None:
    """Windows that a block goes over, with and without a NaN."""
    x = wave((2, 2, 30, 29)).requires_grad_()
    for y in (
        engine.avg_pool2d(x, (9, 8), stride=7, padding=(1, 3)),
        engine.adaptive_avg_pool2d(x, (2, 1)),
        engine.adaptive_avg_pool2d(x, 1),
    ):
        y.backward(wave(y.shape, 3.0))
    for x in (wave((2, 1, 30, 29)).round(), wave((1, 1, 30, 29)).log()):
        engine.max_pool2d(x, (9, 8), stride=7, padding=(4, 3), dilation=2)
        engine.adaptive_max_pool2d(x, (2, 1))
        engine.adaptive_max_pool2d(x, 1)


@contextmanager
def may_round() -> Iterator[None]:
    """Products may round to TF32 inside a `with` block."""
    before = engine.get_float32_matmul_precision()
    engine.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        engine.set_float32_matmul_precision(before)


def rounded() -> None:
    """Products and convolutions that may round to TF32, with sides that lie in every way.

    Rows begin at 16 bytes or do not.
    """
    with may_round():
        products(ROUNDED)
        convolutions()
        for m, k, n in ((1, 1, 1), (31, 33, 257), (160, 64, 136), (4, 20, 8), (130, 36, 260)):
            rows, columns = wave((m, k)), wave((k, n), 1.0, terms=k)
            for a in (rows, wave((k, m)).t()):
                for b in (columns, wave((n, k), 1.0, terms=k).t()):
                    engine.addmm(wave((n,), 2.0), a, b)
        wave((5, 70))[:, 1:].t() @ wave((5, 66), 1.0, terms=5)[:, 2:]
        both = wave((1 + 64 * 64,))  # two sides in one block, of which one begins at no 16 bytes
        both[1:].view(64, 64) @ both[:-1].view(64, 64)
        both[:-1].view(64, 64) @ both[1:].view(64, 64)
        wave((9, 80))[:, ::2] @ wave((40, 7), 1.0, terms=40)[::1, ::3]


def products(shapes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = PRODUCTS) -> None:
    """Many, of few columns or rows, and of a depth that is cut in pieces."""
    for a, b in shapes:
        x, y = wave(a).requires_grad_(), wave(b, 1.0, terms=b[-2]).requires_grad_()
        (x @ y).sum().backward()
