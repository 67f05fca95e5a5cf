"""Views, joins, products, first values and forms in place that are composed: torch's results."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.parity

# (name, the shapes of its inputs, the call): `lib` is torch or gradcli.engine.
CALLS = [
    ("transpose", [(2, 3, 5)], lambda lib, x: x.transpose(0, -1)),
    ("transpose", [(0, 3)], lambda lib, x: lib.transpose(x, 1, 0)),
    ("t", [(3, 5)], lambda lib, x: x.t()),
    ("t", [(4,)], lambda lib, x: x.t()),
    ("view", [(2, 3, 4)], lambda lib, x: x.view(6, -1)),
    ("view", [(0, 3)], lambda lib, x: x.view(3, 0)),
    ("contiguous", [(3, 5)], lambda lib, x: x.t().contiguous()),
    ("flatten", [(2, 3, 4)], lambda lib, x: x.flatten(1)),
    ("flatten", [()], lambda lib, x: x.flatten()),
    ("squeeze", [(1, 3, 1)], lambda lib, x: x.squeeze()),
    ("squeeze", [(1, 3, 1)], lambda lib, x: x.squeeze(-1)),
    ("squeeze", [(2, 3)], lambda lib, x: x.squeeze(0)),
    ("unsqueeze", [(2, 3)], lambda lib, x: x.unsqueeze(-2)),
    ("unsqueeze", [()], lambda lib, x: x.unsqueeze(0)),
    ("chunk", [(7, 2)], lambda lib, x: lib.chunk(x, 3)),
    ("chunk", [(2, 5)], lambda lib, x: x.chunk(4, dim=1)),
    ("unbind", [(3, 2)], lambda lib, x: x.unbind(1)),
    ("cat", [(2, 3), (2, 1), (2, 4)], lambda lib, *xs: lib.cat(xs, dim=1)),
    ("cat", [(0, 3), (2, 3)], lambda lib, *xs: lib.cat(xs)),
    ("stack", [(2, 3), (2, 3)], lambda lib, *xs: lib.stack(xs, dim=-1)),
    ("mm", [(3, 4), (4, 5)], lambda lib, a, b: a.mm(b)),
    ("mm", [(3, 0), (0, 5)], lambda lib, a, b: a.mm(b)),
    ("bmm", [(2, 3, 4), (2, 4, 5)], lambda lib, a, b: lib.bmm(a, b)),
    ("full_like", [(2, 3)], lambda lib, x: lib.full_like(x, 2.5) * x),
    ("zeros_like", [(2, 3)], lambda lib, x: lib.zeros_like(x) + x),
    ("ones_like", [(3, 0)], lambda lib, x: lib.ones_like(x) + x),
    ("to", [(3, 2)], lambda lib, x: x.to(lib.float32)),
    ("float", [(3, 2)], lambda lib, x: x.float()),
    ("double", [(3, 2)], lambda lib, x: x.double()),
]
# torch has these in torch.nn.functional, and the two of papers nowhere.
FUNCTIONS = [
    ("relu_squared", (3, 4), {}, lambda x: torch.relu(x).square()),
    ("pixel_shuffle", (2, 8, 3, 2), {"upscale_factor": 2}, None),
    ("pixel_unshuffle", (2, 2, 6, 4), {"downscale_factor": 2}, None),
    ("adaptive_max_pool1d", (2, 3, 11), {"output_size": 4}, None),
    ("adaptive_max_pool2d", (2, 3, 7, 5), {"output_size": (3, 2)}, None),
    ("dropout1d", (2, 3, 4), {"training": False}, None),
    ("dropout2d", (2, 3, 4, 5), {"training": False}, None),
    ("alpha_dropout", (3, 4), {"training": False}, None),
]
TRUTHS = [
    ("add_", lambda x: x.clone().add_(x[..., 0:1])),
    ("sub_", lambda x: x.clone().sub_(x[:, :1])),
    ("mul_", lambda x: x.clone().mul_(x)),
    ("div_", lambda x: x.clone().div_(3)),
    ("clamp_", lambda x: x.clone().clamp_(-0.5, 0.5)),
    ("zero_", lambda x: x.clone().zero_()),
    ("fill_", lambda x: x.clone().fill_(1.5)),
    ("any", lambda x: (x > 1).any()),
    ("any", lambda x: (x > 1).any(1)),
    ("all", lambda x: (x > -1).all(0)),
    ("count_nonzero", lambda x: (x > 0).count_nonzero()),
    ("count_nonzero", lambda x: x.count_nonzero(1)),
    ("int", lambda x: (x * 9).int()),
    ("long", lambda x: (x * 9).long()),
    ("bool", lambda x: x.bool()),
]
FIRST = [
    ("arange", lambda lib: lib.arange(7)),
    ("arange", lambda lib: lib.arange(2, 12, 3)),
    ("arange", lambda lib: lib.arange(1.0, -1.0, -0.3)),
    ("eye", lambda lib: lib.eye(3)),
    ("eye", lambda lib: lib.eye(2, 5)),
]


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def same(agree, name, mine, reference, found, expected):
    """Results, and the gradients of the inputs for fixed incoming ones."""
    for i, (y, want) in enumerate(zip(parts(found), parts(expected), strict=True)):
        agree(name, y, want)
        grad = randn(*want.shape, dtype=want.dtype, seed=20 + i)
        want.backward(grad, retain_graph=True)
        y.backward(ours(grad), retain_graph=True)
    for x, other in zip(mine, reference, strict=True):
        if other.grad is not None:
            agree(name, x.grad, other.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "shapes", "call"), CALLS)
def test_values_and_gradients(agree, name, shapes, call, dtype):
    reference = [
        randn(*shape, dtype=dtype, seed=i).requires_grad_() for i, shape in enumerate(shapes)
    ]
    mine = [ours(x, requires_grad=True) for x in reference]
    same(agree, name, mine, reference, call(engine, *mine), call(torch, *reference))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "shape", "options", "formula"), FUNCTIONS)
def test_functions_of_layers(agree, name, shape, options, formula, dtype):
    x = randn(*shape, dtype=dtype).requires_grad_()
    mine = ours(x, requires_grad=True)
    theirs = formula or getattr(torch.nn.functional, name)
    expected = theirs(x) if formula else theirs(x, **options)
    same(agree, f"F.{name}", [mine], [x], getattr(F, name)(mine, **options), expected)


def test_a_bilinear_form(agree):
    values = [randn(*shape, seed=i) for i, shape in enumerate([(3, 4), (3, 5), (2, 4, 5), (2,)])]
    reference = [x.requires_grad_() for x in values]
    mine = [ours(x, requires_grad=True) for x in values]
    expected = torch.nn.functional.bilinear(*reference)
    same(agree, "F.bilinear", mine, reference, F.bilinear(*mine), expected)


@pytest.mark.parametrize(("name", "call"), TRUTHS)
def test_results_without_a_gradient(agree, name, call):
    x = randn(3, 5)
    agree(name, call(ours(x)), call(x))
    agree(name, call(ours(x[:0])), call(x[:0]))


@pytest.mark.parametrize(("name", "call"), FIRST)
def test_first_values(agree, name, call):
    agree(name, call(engine), call(torch))
