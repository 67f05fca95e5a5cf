"""Activation modules beside torch's: names, values, gradients, kinks, training."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402
from twins import same_layer, same_training, stepped  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity

PLAIN = [
    *("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus"),
    *("Softsign", "Hardswish", "Hardsigmoid", "Hardtanh", "Tanh", "Tanhshrink", "Sigmoid"),
    *("LogSigmoid", "PReLU", "GLU"),
]
# (layer, its arguments, the input's shape)
CASES = [
    *((name, (), {}, shape) for name in PLAIN for shape in [(3, 4), (2, 1, 6), (0, 4)]),
    ("LeakyReLU", (0.2,), {}, (7, 3)),
    ("LeakyReLU", (), {"negative_slope": -0.5}, (7, 3)),
    ("PReLU", (3,), {}, (2, 3, 5)),
    ("PReLU", (), {"num_parameters": 4, "init": -0.5}, (2, 4, 3, 5)),
    ("PReLU", (1, 0.1), {}, (7,)),
    ("ELU", (0.3,), {}, (7, 3)),
    ("CELU", (), {"alpha": 2.5}, (7, 3)),
    ("GELU", ("tanh",), {}, (7, 3)),
    ("Softplus", (2.0, 1.5), {}, (7, 3)),
    ("Hardtanh", (-0.3, 0.7), {}, (7, 3)),
    ("Threshold", (0.2, -1.0), {}, (7, 3)),
    ("Softmax", (1,), {}, (2, 3, 5)),
    ("LogSoftmax", (), {"dim": -1}, (2, 3, 5)),
    ("LogSoftmax", (0,), {}, (4, 3)),
    ("Softmin", (1,), {}, (2, 3, 5)),
    ("GLU", (1,), {}, (2, 6, 5)),
]
KINKS = [-6.0, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, 20.0, 100.0, -100.0]
DTYPES = pytest.mark.parametrize("dtype", list(FLOATS), ids=str)


def compared(name):
    """The types in which torch's own numbers are exact: its sixth in Hardsigmoid is a float32."""
    return [torch.float32] if name == "Hardsigmoid" else list(FLOATS)


@pytest.mark.parametrize(
    ("name", "args", "options", "shape", "dtype"),
    [(*case, dtype) for case in CASES for dtype in compared(case[0])],
)
def test_activations_give_torchs_values_and_gradients(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, d) for name in (*PLAIN, "Threshold") for d in compared(name)]
)
def test_kinks_and_ends_are_torchs(agree, name, dtype):
    args = (0.5, 2.0) if name == "Threshold" else ()
    x = torch.tensor(KINKS, dtype=dtype, requires_grad=True)
    mine = ours(x, requires_grad=True)
    layer, reference = getattr(nn, name)(*args), getattr(torch.nn, name)(*args).to(dtype)
    y, our_y = reference(x), layer.to(FLOATS[dtype])(mine)
    agree(f"nn.{name}", our_y, y)
    y.sum().backward()
    our_y.sum().backward()
    agree(f"nn.{name}", mine.grad, x.grad)


@pytest.mark.parametrize("sizes", [(1, (2, 5)), (3, (2, 3, 4)), (4, (5, 4))])
def test_a_learnt_slope_trains_as_in_torch(agree, sizes):
    count, shape = sizes
    same_training(agree, "PReLU", (count,), {}, shape, lr=0.3)


def paper(name, x):
    """What torch has no class for, as its paper has it."""
    if name == "ReLUSquared":
        return torch.relu(x) ** 2
    first, second = x.chunk(2, -1)
    return first * torch.sigmoid(first) * second


@DTYPES
@pytest.mark.parametrize("name", ["ReLUSquared", "SwiGLU"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 1, 6), (0, 2)])
def test_activations_of_papers(agree, name, shape, dtype):
    x = (3 * randn(*shape, dtype=dtype)).requires_grad_()
    y = paper(name, x)
    grad = randn(*y.shape, dtype=dtype, seed=1)
    y.backward(grad)
    for given in (ours(x), stepped(ours(x))):
        mine = given.detach().requires_grad_()
        our_y = getattr(nn, name)()(mine)
        agree(f"nn.{name}", our_y, y)
        our_y.backward(ours(grad))
        agree(f"nn.{name}", mine.grad, x.grad)


def test_swiglu_takes_its_halves_along_any_dimension(agree):
    x = randn(4, 3, 2)
    first, second = x.chunk(2, 0)
    found = nn.functional.swiglu(ours(x), 0)
    agree("F.swiglu", found, torch.nn.functional.silu(first) * second)


def test_a_captured_step_of_all_activations_has_the_eager_bits():
    model = nn.Sequential(*(getattr(nn, name)() for name in [*PLAIN[:-1], "ReLUSquared", "SwiGLU"]))

    def step(x):
        model.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        return loss, model[18].weight.grad

    fast = engine.capture(step)
    for seed in range(4):
        x = ours(randn(3, 4, dtype=torch.float32, seed=seed))
        assert [y.tolist() for y in fast(x)] == [y.tolist() for y in step(x)]
    assert not fast.fallback_reason
