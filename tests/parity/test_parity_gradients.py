"""The gradients that small engines get wrong: shared inputs, broadcasting, ties, long chains."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import ours, randn  # noqa: E402

pytestmark = pytest.mark.parity


def compare(agree, function, *inputs, terms=128):
    """`function` of our tensors and of torch's: same values, same gradients."""
    reference = [x.clone().requires_grad_() for x in inputs]
    mine = [ours(x, requires_grad=True) for x in inputs]
    y, our_y = function(*reference), function(*mine)
    agree("autograd", our_y, y, terms=terms)
    grad = randn(*y.shape, dtype=y.dtype, seed=99)
    y.backward(grad)
    our_y.backward(ours(grad))
    for p, q in zip(mine, reference, strict=True):
        agree("autograd", p.grad, q.grad, terms=terms)


DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@DTYPES
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x,
        lambda x: x + x,
        lambda x: x + x * x,
        lambda x: x * x * x - x,
        lambda x: x / (x * x + 1),
        lambda x: (x * x) * (x + x),
    ],
)
def test_one_tensor_used_twice(agree, function, dtype):
    compare(agree, function, randn(3, 5, dtype=dtype))


@DTYPES
def test_one_tensor_used_by_three_branches(agree, dtype):
    def function(x):
        y = x * 2
        return y.exp() + (y * x).sum(0) * y + y.reshape(3, 5).tanh()

    compare(agree, function, randn(3, 5, dtype=dtype))


@DTYPES
def test_a_branch_through_views_of_one_tensor(agree, dtype):
    def function(x):
        return x.t()[1:, :] * x[:, 0] + x[:, 1:].t() * x.sum()

    compare(agree, function, randn(3, 5, dtype=dtype))


def test_a_chain_of_10000_ops(agree):
    def function(x):
        y = x
        for _ in range(5000):
            y = y * 1.0001 + 0.001
        return y

    compare(agree, function, randn(3, 2), terms=20_000)


REDUCED = [
    (shape, dim, keepdim)
    for shape in ((3, 5), (2, 3, 4), (4, 1, 3))
    for dim in (*range(-len(shape), len(shape)), (0, -1), None)
    for keepdim in (False, True)
    if not (dim is None and keepdim)
]


@DTYPES
@pytest.mark.parametrize(("shape", "dim", "keepdim"), REDUCED)
def test_sum_and_mean_over_any_axis(agree, shape, dim, keepdim, dtype):
    x = randn(*shape, dtype=dtype)
    for name in ("sum", "mean"):
        if dim is None:
            compare(agree, lambda t, name=name: getattr(t, name)(), x)
        else:
            compare(agree, lambda t, name=name: getattr(t, name)(dim, keepdim=keepdim) * 1, x)


@DTYPES
@pytest.mark.parametrize(
    ("shape", "dim", "keepdim"),
    [case for case in REDUCED if not (case[0] == (4, 1, 3) and case[1] in (1, -2))],
)
def test_var_over_any_axis(agree, shape, dim, keepdim, dtype):
    x = randn(*shape, dtype=dtype)
    if dim is None:
        compare(agree, lambda t: t.var(), x)
        return
    compare(agree, lambda t: t.var(dim, keepdim=keepdim), x)
    compare(agree, lambda t: t.var(dim, correction=0, keepdim=keepdim), x)


@DTYPES
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize(
    ("a", "b"), [((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (2, 3)), ((2, 1, 3), (5, 1))]
)
def test_broadcasting(agree, op, a, b, dtype):
    x, y = randn(*a, dtype=dtype), randn(*b, dtype=dtype, seed=1).abs() + 0.5
    compare(agree, lambda p, q: getattr(p, op)(q), x, y)


@DTYPES
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_largest_and_smallest_with_ties(agree, name, dtype):
    x = torch.tensor([[1, 3, 3, 0], [2, 2, 2, 2], [5, -1, 0, 5]], dtype=dtype)
    compare(agree, lambda t: getattr(t, name)(), x)
    for dim in (0, 1, -1):
        compare(agree, lambda t, dim=dim: getattr(t, name)(dim)[0], x)
        compare(agree, lambda t, dim=dim: getattr(t, f"a{name}")(dim), x)
    y = torch.tensor([[1, 2, 4, 0]], dtype=dtype)
    whole = {"max": "maximum", "min": "minimum"}[name]
    compare(agree, lambda p, q: getattr(p, whole)(q), x, y)


@DTYPES
def test_relu_and_abs_at_0(agree, dtype):
    x = torch.tensor([-1.0, -0.0, 0.0, 2.0], dtype=dtype)
    compare(agree, lambda t: t.relu() + t.abs() * 2, x)


@DTYPES
def test_gradients_add_up_over_two_backwards(agree, dtype):
    x = randn(3, 5, dtype=dtype)
    reference, mine = x.clone().requires_grad_(), ours(x, requires_grad=True)
    for t in (reference, mine):
        (t * t).sum().backward()
        (t * 3).sum().backward()
    agree("autograd", mine.grad, reference.grad)


@DTYPES
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (4,)), ((4,), (2, 4, 3))],
)
def test_matmul_of_any_rank(agree, a, b, dtype):
    compare(agree, lambda p, q: p @ q, randn(*a, dtype=dtype), randn(*b, dtype=dtype, seed=1))
