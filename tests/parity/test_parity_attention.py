"""Attention: values and gradients are torch's, over layouts, masks and sizes beside the tiles."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import copy_weights, ours, randn, theirs  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.parity
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
NAME = "F.scaled_dot_product_attention"
attend = torch.nn.functional.scaled_dot_product_attention


def compare(agree, q, k, v, mask=None, **options):
    """The same attention in both: same values, same gradients."""
    floats = [q, k, v] if mask is None or mask.dtype == torch.bool else [q, k, v, mask]
    reference = [x.clone().requires_grad_() for x in floats]
    mine = [ours(x, requires_grad=True) for x in floats]
    rest = [] if mask is None or len(floats) == 4 else [mask]
    y = attend(*reference, *rest, **options)
    our_y = F.scaled_dot_product_attention(*mine, *map(ours, rest), **options)
    agree(NAME, our_y, y, terms=256)
    grad = randn(*y.shape, dtype=y.dtype, seed=99)
    y.backward(grad)
    our_y.backward(ours(grad))
    for found, expected in zip(mine, reference, strict=True):
        agree(NAME, found.grad, expected.grad, terms=1024)


@DTYPES
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("lead", "queries", "keys", "depth", "width"),
    [
        ((2, 4), 128, 128, 32, 32),
        ((1, 2), 127, 127, 33, 33),
        ((1, 1), 300, 300, 17, 5),
        ((17, 1), 65, 260, 8, 8),
        ((1, 3), 260, 65, 8, 9),
        ((5,), 64, 129, 16, 1),
        ((), 1, 257, 3, 4),
        ((2, 1, 3), 9, 11, 64, 70),
    ],
)
def test_values_and_gradients(agree, lead, queries, keys, depth, width, is_causal, dtype):
    q, k, v = (
        randn(*lead, rows, columns, dtype=dtype, seed=i)
        for i, (rows, columns) in enumerate([(queries, depth), (keys, depth), (keys, width)])
    )
    compare(agree, q, k, v, is_causal=is_causal)


@DTYPES
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize(
    "shape", [(70, 140), (1, 140), (3, 1, 140), (2, 1, 70, 140), (2, 3, 70, 1)]
)
def test_masks(agree, kind, shape, dtype):
    q, k, v = (randn(2, 3, rows, 8, dtype=dtype, seed=i) for i, rows in enumerate((70, 140, 140)))
    mask = randn(*shape, dtype=dtype, seed=5)
    compare(agree, q, k, v, mask > 0 if kind == "bool" else mask)


@DTYPES
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}], ids=str)
@pytest.mark.parametrize(("heads", "shared"), [(6, 2), (4, 1), (3, 3)])
def test_grouped_heads(agree, dtype, heads, shared, options):
    q, k, v = (
        randn(2, h, rows, columns, dtype=dtype, seed=i).requires_grad_()
        for i, (h, rows, columns) in enumerate([(heads, 9, 8), (shared, 70, 8), (shared, 70, 5)])
    )
    mine = [ours(x, requires_grad=True) for x in (q, k, v)]
    y = attend(q, k, v, enable_gqa=True, **options)
    our_y = F.scaled_dot_product_attention(*mine, enable_gqa=True, **options)
    agree(NAME, our_y, y, terms=256)
    grad = randn(*y.shape, dtype=dtype, seed=4)
    y.backward(grad)
    our_y.backward(ours(grad))
    for found, expected in zip(mine, (q, k, v), strict=True):
        agree(NAME, found.grad, expected.grad, terms=1024)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_query_that_sees_nothing_gives_0(agree, kind):
    q, k, v = (randn(1, 2, rows, 4, seed=i) for i, rows in enumerate((5, 200, 200)))
    mask = torch.ones(5, 200, dtype=torch.bool)
    mask[1] = False
    mask[3, :150] = False
    if kind == "float":
        mask = torch.zeros(5, 200, dtype=torch.float64).masked_fill(~mask, -torch.inf)
        found = F.scaled_dot_product_attention(*map(ours, (q, k, v, mask)))
        agree(NAME, found, attend(q, k, v, mask))
    else:
        compare(agree, q, k, v, mask)
    found = F.scaled_dot_product_attention(*map(ours, (q, k, v, mask)))
    assert theirs(found)[:, :, 1].eq(0).all()


@DTYPES
def test_large_scores_do_not_overflow(agree, dtype):
    q, k, v = (200 * randn(1, 2, 140, 8, dtype=dtype, seed=i) for i in range(3))
    agree(NAME, F.scaled_dot_product_attention(*map(ours, (q, k, v))), attend(q, k, v), terms=4096)


@DTYPES
@pytest.mark.parametrize("cut", ["split", "slices", "unbind"])
def test_heads_cut_from_one_matrix(agree, cut, dtype):
    def function(x, library, attention):
        batch, rows, columns = 3, 70, 24
        if cut == "unbind":
            parts = x.reshape(batch, rows, 3, 2, 12).unbind(2)
        elif cut == "split":
            parts = [part.reshape(batch, rows, 2, 12) for part in x.split(columns, 2)]
        else:
            slices = (x[..., i * columns : (i + 1) * columns] for i in range(3))
            parts = [part.reshape(batch, rows, 2, 12) for part in slices]
        y = attention(*(part.transpose(1, 2) for part in parts), is_causal=True)
        return y.transpose(1, 2).reshape(batch, rows, columns)

    x = randn(3, 70, 72, dtype=dtype).requires_grad_()
    our_x = ours(x, requires_grad=True)
    y, our_y = function(x, torch, attend), function(our_x, engine, F.scaled_dot_product_attention)
    agree(NAME, our_y, y)
    grad = randn(*y.shape, dtype=dtype, seed=9)
    y.backward(grad)
    our_y.backward(ours(grad))
    agree(NAME, our_x.grad, x.grad, terms=512)


def test_dropped_weights_keep_the_mean():
    engine.manual_seed(0)
    q, k = ours(randn(1, 1, 4, 8)), ours(randn(1, 1, 500, 8, seed=1))
    ones = engine.ones(1, 1, 500, 8, dtype=engine.float64)
    found = theirs(F.scaled_dot_product_attention(q, k, ones, dropout_p=0.5))
    assert found.ne(1).any()
    assert abs(found.mean().item() - 1) < 0.2
    assert theirs(F.scaled_dot_product_attention(q, k, ones, dropout_p=1.0)).eq(0).all()


def block(module, functional):
    """A block of GPT from either library, written once."""

    class Block(module.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = module.LayerNorm(24), module.LayerNorm(24)
            self.qkv = module.Linear(24, 72, bias=False)
            self.proj = module.Linear(24, 24, bias=False)
            self.fc, self.out = module.Linear(24, 96, bias=False), module.Linear(96, 24, bias=False)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.ln1(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in (q, k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(functional.gelu(self.fc(self.ln2(x)), approximate="tanh"))

    return Block()


def test_a_block_of_gpt(agree):
    torch.manual_seed(0)
    theirs_block = block(torch.nn, torch.nn.functional)
    our_block = copy_weights(block(nn, F), theirs_block)
    x = randn(2, 67, 24, dtype=torch.float32)
    y, our_y = theirs_block(x), our_block(ours(x))
    agree(NAME, our_y, y, terms=512)
    y.square().sum().backward()
    (our_y * our_y).sum().backward()
    for mine, reference in zip(our_block.parameters(), theirs_block.parameters(), strict=True):
        agree(NAME, mine.grad, reference.grad, terms=512)
