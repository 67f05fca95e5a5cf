"""bfloat16 beside torch's: rounding, types of results, and results of ops."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import ours, randn, theirs  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.parity

HALF = torch.bfloat16
TYPES = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool]


def test_numbers_are_rounded_as_in_torch(agree):
    bits = torch.randint(-(2**31), 2**31 - 1, (20_000,), dtype=torch.int32)
    bits[::2] &= -65_536
    bits[::2] |= torch.tensor([0x7FFF, 0x8000, 0x8001, 0, 0x18000]).repeat(2_000).to(torch.int32)
    x = bits.view(torch.float32)
    found, wanted = theirs(ours(x).bfloat16()), x.bfloat16()
    assert torch.equal(found.isnan(), wanted.isnan())
    finite = ~wanted.isnan()
    assert torch.equal(found.view(torch.int16)[finite], wanted.view(torch.int16)[finite])
    small = finite & (x.abs() < 1e30)
    agree("bfloat16", ours(x[small]).bfloat16(), wanted[small], terms=1)


def test_a_tensor_of_torch_is_shared_and_goes_back():
    x = randn(3, 5).to(HALF)
    shared = engine.from_dlpack(x)
    x[0, 0] = 7
    assert shared.dtype is engine.bfloat16
    assert shared.tolist() == x.tolist()
    assert torch.equal(torch.from_dlpack(shared.t()), x.t())


@pytest.mark.parametrize("other", [*TYPES, HALF], ids=str)
def test_the_types_of_results_are_torch_s(other):
    x, y = torch.ones(2, dtype=HALF), torch.ones(2).to(other)
    a, b = ours(x), ours(y)
    for make in (lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x / y):
        for left, right, mine, other_mine in ((x, y, a, b), (x, y.sum(), a, b.sum())):
            wanted = make(left, right).dtype
            assert str(make(mine, other_mine).dtype).split(".")[1] == str(wanted).split(".")[1]


# How far apart bfloat16 results may be: both round once what they computed in float32.
CASES = {
    "add": lambda m, x, y: x + y,
    "mul": lambda m, x, y: x * y * 0.1,
    "div": lambda m, x, y: x / (y * y + 1),
    "exp": lambda m, x, y: x.exp(),
    "tanh": lambda m, x, y: x.tanh(),
    "sigmoid": lambda m, x, y: x.sigmoid(),
    "sum": lambda m, x, y: x.sum(1),
    "mean": lambda m, x, y: x.mean(),
    "matmul": lambda m, x, y: x @ y.t(),
    "softmax": lambda m, x, y: x.softmax(-1),
    "log_softmax": lambda m, x, y: x.log_softmax(0),
    "gelu": lambda m, x, y: m.gelu(x),
    "layer_norm": lambda m, x, y: m.layer_norm(x, (13,)),
    "rms_norm": lambda m, x, y: m.rms_norm(x, (13,)),
    "linear": lambda m, x, y: m.linear(x, y),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_torch_s_to_a_rounding(name, agree):
    x, y = (randn(7, 13, seed=seed).to(HALF) for seed in (1, 2))
    a, b = ours(x, requires_grad=True), ours(y, requires_grad=True)
    x.requires_grad_(), y.requires_grad_()
    wanted, found = CASES[name](torch.nn.functional, x, y), CASES[name](F, a, b)
    agree("bfloat16", found, wanted, terms=1)
    seed = randn(*wanted.shape, seed=3).to(HALF)
    wanted.backward(seed), found.backward(ours(seed))
    for mine, other in ((a, x), (b, y)):
        if other.grad is not None:
            agree("bfloat16", mine.grad, other.grad, terms=4)
