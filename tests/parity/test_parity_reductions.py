"""Composed reductions: values and gradients as torch gives them, at zeros and infinities too."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")
from both import FLOATS, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity

INF = float("inf")
SHAPES = [(3, 5), (2, 1, 7), (), (0, 3), (3, 0), (1,), (17,)]


def agree_with_gradient(agree, name, x, *args, **options):
    """The value, and the gradient of x for a random incoming one."""
    leaf = x.clone().requires_grad_()
    mine = ours(x, requires_grad=True)
    expected = getattr(torch, name)(leaf, *args, **options)
    found = getattr(engine, name)(mine, *args, **options)
    pair = isinstance(expected, tuple)
    for y, our_y in zip(expected, found, strict=True) if pair else [(expected, found)]:
        agree(name, our_y, y)
    y, our_y = (sum(expected), found[0] + found[1]) if pair else (expected, found)
    grad = randn(*y.shape, dtype=y.dtype, seed=5)
    y.backward(grad)
    our_y.backward(ours(grad))
    agree(name, mine.grad, leaf.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "prod", "logsumexp"])
def test_along_each_dimension(agree, name, shape, dtype):
    check = partial(agree_with_gradient, agree, name)
    x = randn(*shape, dtype=dtype, seed=1)
    for dim in range(-max(1, len(shape)), max(1, len(shape))):
        check(x, dim)
        if name in ("prod", "logsumexp"):
            check(x, dim, keepdim=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_of_everything(agree, shape):
    agree_with_gradient(agree, "prod", randn(*shape, seed=2))


@pytest.mark.parametrize("zeros", [1, 2, 5])
def test_products_with_zeros_have_the_right_slopes(agree, zeros):
    x = randn(3, 5, seed=3)
    x[1, :zeros] = 0.0
    for dim in (0, 1):
        agree_with_gradient(agree, "prod", x, dim)
        agree_with_gradient(agree, "cumprod", x, dim)
    agree_with_gradient(agree, "prod", x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_whole_numbers_are_counted_in_int64(agree, dtype):
    x = torch.tensor([[3, 1, 2], [1, 5, 4]]).to(dtype)
    for name in ("cumsum", "cumprod", "prod"):
        agree(name, getattr(engine, name)(ours(x), 1), getattr(torch, name)(x, 1))
        agree(
            name,
            getattr(engine, name)(ours(x), 1, dtype=engine.float64),
            getattr(torch, name)(x, 1, dtype=torch.float64),
        )
    agree("prod", ours(x).prod(), x.prod())


def test_infinities_stay_in_their_own_places(agree):
    x = torch.tensor([[1.0, INF, 2.0], [-INF, -INF, -INF], [1e30, -INF, 3.0]], dtype=torch.float64)
    for dim in (0, 1):
        agree("cumsum", engine.cumsum(ours(x), dim), torch.cumsum(x, dim))
        agree("logsumexp", engine.logsumexp(ours(x), dim), torch.logsumexp(x, dim))
    agree("logsumexp", engine.logsumexp(ours(x), (0, 1)), torch.logsumexp(x, (0, 1)))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("p", ["fro", None, 2, 1, 3, 0.5, INF, -INF, -2], ids=str)
def test_norms(agree, p, dtype):
    x = randn(2, 3, 4, dtype=dtype, seed=4)
    for dim in (None, 0, -1, (0, 2)):
        for keepdim in (False, True):
            agree_with_gradient(agree, "norm", x, p, dim, keepdim)


@pytest.mark.parametrize("p", [2, 1, 3, 1.5, INF, -INF, -1, -2.5], ids=str)
def test_norms_at_zeros_have_torchs_slopes(agree, p):
    x = torch.tensor([[0.0, 0.0], [3.0, 0.0], [-2.0, 2.0]], dtype=torch.float64)
    agree_with_gradient(agree, "norm", x, p, 1)


def test_the_count_of_what_is_not_0_has_no_slope(agree):
    x = torch.tensor([[0.0, 2.0, float("nan")], [0.0, 0.0, -1.0]])
    for dim in (None, 0, 1):
        agree("norm", engine.norm(ours(x), 0, dim), torch.norm(x, 0, dim))
    mine = ours(x[:, :2], requires_grad=True)
    mine.norm(0).backward()  # torch leaves the gradient undefined, which means 0
    assert mine.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ["std_mean", "var_mean"])
@pytest.mark.parametrize("options", [{}, {"dim": 0}, {"dim": (0, 2), "keepdim": True},
                                     {"dim": 1, "correction": 0}], ids=str)  # fmt: skip
def test_spread_and_mean(agree, name, options):
    agree_with_gradient(agree, name, randn(3, 4, 5, seed=6), **options)
