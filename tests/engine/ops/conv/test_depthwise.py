"""Convolution with filters for each channel alone: as many convolutions of one channel."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine.nn import functional as F


@pytest.mark.parametrize(
    ("shape", "window", "options"),
    [
        ((2, 3, 5, 70), (3, 3), {"padding": 1}),
        ((1, 2, 9, 131), (2, 5), {"padding": (0, 2), "dilation": (1, 3)}),
        ((3, 2, 7, 40), (3, 2), {"stride": (1, 2), "padding": (2, 1)}),
        ((2, 2, 1, 33), (1, 40), {"padding": (0, 20)}),
    ],
)
@pytest.mark.parametrize("filters", [1, 2])
def test_gradients_are_those_of_each_channel_alone(
    shape: tuple[int, ...], window: tuple[int, int], options: dict[str, object], filters: int
) -> None:
    channels = shape[1]
    x = engine.randn(*shape, dtype=engine.float64).requires_grad_()
    w = engine.randn(channels * filters, 1, *window, dtype=engine.float64).requires_grad_()
    y = F.conv2d(x, w, groups=channels, **options)
    each = [
        F.conv2d(x[:, c : c + 1], w[c * filters : (c + 1) * filters], **options)
        for c in range(channels)
    ]
    assert (y - engine.cat(each, 1)).abs().amax().item() < 1e-12
    grad = engine.randn(*y.shape, dtype=engine.float64)
    found = engine.grad(y, (x, w), grad)
    expected = engine.grad(engine.cat(each, 1), (x, w), grad)
    for one, other in zip(found, expected, strict=True):
        assert one is not None
        assert other is not None
        assert (one - other).abs().amax().item() < 1e-11


def test_long_rows_of_running_products_keep_their_zeros_apart() -> None:
    x = engine.randn(3, 40, dtype=engine.float64)
    x = engine.where(engine.arange(40) == 7, 0.0, x).requires_grad_()
    for dim in (0, 1):
        y = engine.cumprod(x, dim)
        with engine.decomposed():
            wanted = engine.cumprod(x, dim)
        grad = engine.randn(3, 40, dtype=engine.float64)
        (found,), (expected,) = engine.grad(y, x, grad), engine.grad(wanted, x, grad)
        assert found is not None
        assert expected is not None
        assert (found - expected).abs().amax().item() < 1e-12
