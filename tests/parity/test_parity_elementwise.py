"""Elementwise ops and activations: values, and gradients at kinks too, as torch gives them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from both import FLOATS, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.parity

SHAPES = [(3, 5), (2, 1, 7), (), (0, 3), (1,)]
EVERYWHERE = ["expm1", "exp2", "tan", "atan", "sinh", "cosh", "erf", "erfc", "trunc", "exp", "sin",
              "cos", "tanh", "sigmoid", "floor", "ceil", "sign", "abs", "neg", "relu"]  # fmt: skip
ABOVE_0 = ["log1p", "log2", "log10", "reciprocal", "log", "sqrt", "rsqrt"]
WITHIN_1 = ["asin", "acos"]
UNARY = [*((name, "everywhere") for name in EVERYWHERE), *((name, "above 0") for name in ABOVE_0),
         *((name, "within 1") for name in WITHIN_1)]  # fmt: skip


def agree_with_gradient(agree, name, our_function, their_function, x, **options):
    """The value, and the gradient of x for a random incoming one."""
    x = x.clone().requires_grad_()
    our_x = ours(x, requires_grad=True)
    expected = their_function(x, **options)
    found = our_function(our_x, **options)
    agree(name, found, expected)
    grad = randn(*expected.shape, dtype=expected.dtype, seed=5)
    expected.backward(grad)
    found.backward(ours(grad))
    agree(name, our_x.grad, x.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "where"), UNARY)
def test_functions_of_one_number(agree, name, where, dtype):
    for seed, shape in enumerate(SHAPES):
        x = randn(*shape, dtype=dtype, seed=seed)
        x = {"everywhere": x, "above 0": x.abs() + 0.05, "within 1": x.tanh() * 0.9}[where]
        agree_with_gradient(agree, name, getattr(engine, name), getattr(torch, name), x)
    strided = randn(5, 6, dtype=dtype, seed=9).abs().mul(0.3).add(0.01).T[::2, 1:]
    agree(
        name, getattr(engine, name)(ours(strided).T.contiguous().T), getattr(torch, name)(strided)
    )


@pytest.mark.parametrize(("name", "where"), UNARY)
def test_whole_numbers_become_floats_or_stay_as_in_torch(agree, name, where):
    low = {"everywhere": -3, "above 0": 1, "within 1": 0}[where]
    numbers = torch.arange(low, 2)
    for x in (numbers, numbers.int(), numbers.clamp(min=0).to(torch.uint8)):
        agree(name, getattr(engine, name)(ours(x)), getattr(torch, name)(x))


ACTIVATIONS = [
    ("relu", {}),
    ("relu6", {}),
    ("leaky_relu", {}),
    ("leaky_relu", {"negative_slope": 0.3}),
    ("elu", {}),
    ("elu", {"alpha": 0.4}),
    ("selu", {}),
    ("celu", {}),
    ("celu", {"alpha": 0.5}),
    ("gelu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("silu", {}),
    ("mish", {}),
    ("softplus", {}),
    ("softplus", {"beta": 2.5, "threshold": 3}),
    ("hardswish", {}),
    ("hardsigmoid", {}),
    ("hardtanh", {}),
    ("hardtanh", {"min_val": -0.5, "max_val": 3.0}),
    ("threshold", {"threshold": 0.5, "value": -2.0}),
    ("logsigmoid", {}),
    ("softsign", {}),
    ("tanhshrink", {}),
    ("tanh", {}),
    ("sigmoid", {}),
    ("softmax", {"dim": 0}),
    ("softmin", {"dim": 0}),
    ("log_softmax", {"dim": 0}),
    ("glu", {"dim": 0}),
]


# torch's sixth in hardsigmoid is a float32 in float64 too.
@pytest.mark.parametrize(
    ("name", "options", "dtype"),
    [
        (name, options, dtype)
        for name, options in ACTIVATIONS
        for dtype in FLOATS
        if (name, dtype) != ("hardsigmoid", torch.float64)
    ],
)
def test_activations_and_their_slopes_at_kinks(agree, name, options, dtype):
    def check(x):
        there = getattr(torch.nn.functional, name)
        agree_with_gradient(agree, f"F.{name}", getattr(F, name), there, x, **options)

    kinks = torch.arange(-13, 14, dtype=dtype) / 2  # 0, 0.5, 1, 3 and 6 with both signs
    far = torch.tensor([-100.0, -40.0, 21.0, 60.0, 100.0, 0.0], dtype=dtype)
    check(kinks[1:])
    check(far)
    check(randn(4, 3, 5, dtype=dtype, seed=1) * 3)
    check(randn(6, 0, dtype=dtype))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("shape", [(4,), (), (3, 5), (2, 3, 4), (0, 3)], ids=str)
def test_prelu_with_one_weight_and_one_a_channel(agree, shape, dtype):
    for count in {1, shape[1] if len(shape) > 1 else 1}:
        x = (randn(*shape, dtype=dtype, seed=1) * 2).round().requires_grad_()
        weight = randn(count, dtype=dtype, seed=2).requires_grad_()
        our_x, our_weight = ours(x, requires_grad=True), ours(weight, requires_grad=True)
        expected, found = torch.nn.functional.prelu(x, weight), F.prelu(our_x, our_weight)
        agree("F.prelu", found, expected)
        expected.sum().backward()
        found.sum().backward()
        agree("F.prelu", our_x.grad, x.grad)
        agree("F.prelu", our_weight.grad, weight.grad)


NUMBERS = [0.0, -0.0, 1.5, -1.5, 2.5, 0.5, -0.5, 7.0, -7.0, float("inf"), -float("inf"),
           float("nan"), 1e-30, 3e9]  # fmt: skip


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide", "atan2", "hypot"])
def test_functions_of_two_numbers(agree, name, dtype):
    a = torch.tensor(NUMBERS, dtype=dtype).repeat_interleave(len(NUMBERS))
    b = torch.tensor(NUMBERS, dtype=dtype).repeat(len(NUMBERS))
    agree(name, getattr(engine, name)(ours(a), ours(b)), getattr(torch, name)(a, b))
    for left, right in (((3, 5), (3, 5)), ((3, 1), (1, 4)), ((), (2, 3)), ((0, 3), (1, 3))):
        a = (randn(*left, dtype=dtype, seed=1) * 9).requires_grad_(name != "floor_divide")
        b = randn(*right, dtype=dtype, seed=2).requires_grad_(name != "floor_divide")
        our_a, our_b = (ours(x, requires_grad=x.requires_grad) for x in (a, b))
        expected, found = getattr(torch, name)(a, b), getattr(engine, name)(our_a, our_b)
        agree(name, found, expected)
        if name != "floor_divide":
            expected.sum().backward()
            found.sum().backward()
            agree(name, our_a.grad, a.grad)
            agree(name, our_b.grad, b.grad)


WHOLE = ["remainder", "fmod", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor",
         "logical_and", "logical_or", "logical_xor", "atan2"]  # fmt: skip
INTS = [torch.int64, torch.int32, torch.uint8]


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_functions_of_two_whole_numbers(agree, name, dtype):
    values = torch.arange(-9, 10) if dtype is not torch.uint8 else torch.arange(0, 256, 17)
    divisors = values[values != 0]
    a = values.repeat_interleave(len(divisors)).to(dtype)
    b = divisors.repeat(len(values)).to(dtype)
    for right in (b, b.long(), int(b[3])):
        found = getattr(engine, name)(ours(a), right if isinstance(right, int) else ours(right))
        if isinstance(right, int) and name in ("logical_and", "logical_or", "logical_xor", "atan2"):
            right = torch.tensor(right)
        agree(name, found, getattr(torch, name)(a, right))


def test_the_smallest_whole_number_divided_by_minus_1(agree):
    for dtype in (torch.int32, torch.int64):
        x = torch.tensor([torch.iinfo(dtype).min, 5], dtype=dtype)
        assert engine.remainder(ours(x), -1).tolist() == [0, 0]
        assert engine.fmod(ours(x), -1).tolist() == [0, 0]
        assert engine.floor_divide(ours(x), -1).tolist() == [torch.iinfo(dtype).min, -5]


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_operators_on_truth_values_and_bits(agree, name):
    a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    for left, right in ((a, b), (a, torch.tensor([3, 4, 5, 6])), (torch.tensor([-3, 8]), 5)):
        found = (
            getattr(ours(left), f"__{name}__")(right if right == 5 else ours(right))
            if isinstance(right, int)
            else getattr(ours(left), f"__{name}__")(ours(right))
        )
        agree(f"bitwise_{name}", found, getattr(torch, f"bitwise_{name}")(left, right))
        logical = getattr(engine, f"logical_{name}")
        other = torch.as_tensor(right)
        agree(
            f"logical_{name}",
            logical(ours(left), ours(other)),
            getattr(torch, f"logical_{name}")(left, other),
        )
    agree("bitwise_not", ~ours(a), ~a)
    agree("logical_not", ours(a).logical_not(), a.logical_not())
    for dtype in INTS:
        x = torch.tensor([0, 1, 100, 7], dtype=dtype)
        agree("bitwise_not", ~ours(x), ~x)
        agree("logical_not", engine.logical_not(ours(x)), torch.logical_not(x))


OPERATORS = [
    lambda x: 2**x, lambda x: 1 - x, lambda x: 5 % x, lambda x: 7 // x, lambda x: x // 2,
    lambda x: x % 3, lambda x: 2.5 / x, lambda x: x / 4, lambda x: 1.5 * x, lambda x: x - 0.5,
    lambda x: x**2, lambda x: -x, lambda x: +x, lambda x: abs(x), lambda x: 2.5 % x,
    lambda x: x // 2.5, lambda x: True + x, lambda x: x < 2, lambda x: x.__ge__(2),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(OPERATORS)))
def test_operators_with_python_numbers(agree, i):
    for x in (
        torch.tensor([1, 2, 3, 5]), torch.tensor([4, 1], dtype=torch.int32), torch.tensor(3),
        torch.tensor([2, 9], dtype=torch.uint8), torch.tensor([[0.5, 1.5]]),
        torch.tensor(2.5, dtype=torch.float64),
    ):  # fmt: skip
        if x.dtype is torch.uint8 and i == 11:
            continue  # -x wraps there as well, tested with the integers
        agree("operators", OPERATORS[i](ours(x)), OPERATORS[i](x))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_truth_of_numbers(agree, dtype):
    x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0], dtype=dtype)
    for name in ("isnan", "isinf", "isfinite", "logical_not"):
        agree(name, getattr(ours(x), name)(), getattr(x, name)())
        whole = torch.tensor([0, 1, 2])
        agree(name, getattr(ours(whole), name)(), getattr(whole, name)())
    agree("nan_to_num", ours(x).nan_to_num(), x.nan_to_num())
    agree("nan_to_num", ours(x).nan_to_num(1.0, 2.0, -3.0), x.nan_to_num(1.0, 2.0, -3.0))
    near = x + torch.tensor([1e-6, 0, 0, 0, 1e-9], dtype=dtype)
    for options in ({}, {"equal_nan": True}, {"rtol": 1e-9}, {"atol": 1e-3, "rtol": 0}):
        agree("isclose", ours(x).isclose(ours(near), **options), x.isclose(near, **options))
        assert ours(x).allclose(ours(near), **options) == x.allclose(near, **options)
    assert ours(x).equal(ours(x)) == x.equal(x)
    assert engine.equal(ours(near[:1]), ours(near[:1]))
    assert not engine.equal(ours(near[:1]), ours(near[:1][None]))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_rounding(agree, dtype):
    x = torch.tensor([0.5, 1.5, -0.5, 2.5, -2.5, 3.7, -3.2, 1e9, 12345.678], dtype=dtype)
    for name in ("round", "trunc", "frac", "floor", "ceil"):
        agree(name, getattr(ours(x), name)(), getattr(x, name)())
        leaf = x.clone().requires_grad_()
        our_leaf = ours(leaf, requires_grad=True)
        getattr(leaf, name)().sum().backward()
        getattr(our_leaf, name)().sum().backward()
        agree(name, our_leaf.grad, leaf.grad)
    for decimals in (-2, 1, 3):
        agree("round", ours(x).round(decimals=decimals), x.round(decimals=decimals))
    agree("round", engine.round(ours(x.long())), torch.round(x.long()))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_mixtures_and_added_products(agree, dtype):
    def check(name, *arguments, **options):
        leaves = [a.clone().requires_grad_() if torch.is_tensor(a) else a for a in arguments]
        our_leaves = [ours(a, requires_grad=True) if torch.is_tensor(a) else a for a in arguments]
        expected = getattr(torch, name)(*leaves, **options)
        found = getattr(engine, name)(*our_leaves, **options)
        agree(name, found, expected)
        expected.sum().backward()
        found.sum().backward()
        for our_leaf, leaf in zip(our_leaves, leaves, strict=True):
            if torch.is_tensor(leaf):
                agree(name, our_leaf.grad, leaf.grad)

    a, b, c = (randn(3, 5, dtype=dtype, seed=i) for i in range(3))
    for weight in (0.3, 0.8, c):
        check("lerp", a, b, weight)
    check("addcmul", a, b, c)
    check("addcmul", a, b[:1], c[:, :1], value=0.3)
    check("addcdiv", a, b, c.abs() + 1, value=-2)
    check("square", a)
    check("clip", a, -0.5, 0.7)
    check("positive", a)
