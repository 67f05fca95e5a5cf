"""MultiheadAttention and the transformer layers: values, gradients, names, training are torch's."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, copy_weights, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning"),
]
DTYPES = pytest.mark.parametrize("dtype", list(FLOATS), ids=str)


def pair(kind, *sizes, dtype=torch.float64, **options):
    """The same layer in both libraries, with the same weights."""
    torch.manual_seed(1)
    reference = getattr(torch.nn, kind)(*sizes, **options).to(dtype)
    with torch.no_grad():
        for i, p in enumerate(reference.parameters()):
            p.add_(0.1 * randn(*p.shape, dtype=dtype, seed=i))
    layer = getattr(nn, kind)(*sizes, **options).to(FLOATS[dtype])
    return copy_weights(layer, reference), reference


def assert_alike(agree, name, layer, reference, inputs, options=(), terms=2048):
    """Outputs, gradients of inputs and parameters, and the loss of 20 steps of SGD."""
    options = dict(options)
    mine = {k: ours(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    given = [x.clone().requires_grad_() for x in inputs]
    our_given = [ours(x, requires_grad=True) for x in inputs]
    results = reference(*given, **options)
    our_results = layer(*our_given, **mine)
    if not isinstance(results, tuple):
        results, our_results = (results,), (our_results,)
    for y, our_y in zip(results, our_results, strict=True):
        assert (y is None) == (our_y is None)
        if y is None:
            continue
        agree(name, our_y, y, terms=terms)
        grad = randn(*y.shape, dtype=y.dtype, seed=20)
        y.backward(grad, retain_graph=True)
        our_y.backward(ours(grad), retain_graph=True)
    for x, our_x in zip(given, our_given, strict=True):
        agree(name, our_x.grad, x.grad, terms=8 * terms)
    for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
        agree(name, p.grad, q.grad, terms=8 * terms)
    train(agree, name, layer, reference, inputs, (options, mine), 64 * terms)


def train(agree, name, layer, reference, inputs, options, terms):
    sgd = torch.optim.SGD(reference.parameters(), lr=1e-3)
    our_sgd = optim.SGD(layer.parameters(), lr=1e-3)
    mine = [ours(x) for x in inputs]
    for _ in range(20):
        sgd.zero_grad()
        our_sgd.zero_grad()
        y, our_y = reference(*inputs, **options[0]), layer(*mine, **options[1])
        y, our_y = (y[0], our_y[0]) if isinstance(y, tuple) else (y, our_y)
        (y * y).sum().backward()
        (our_y * our_y).sum().backward()
        sgd.step()
        our_sgd.step()
    for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
        agree(name, p, q, terms=terms)


CAUSAL = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
PADDED = torch.tensor([[False] * 5, [False, False, False, True, True], [False, True] * 2 + [False]])


@DTYPES
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({}, {}),
        ({"bias": False}, {"average_attn_weights": False}),
        ({"batch_first": True}, {"attn_mask": CAUSAL}),
        ({"batch_first": True}, {"attn_mask": CAUSAL, "is_causal": True}),
        ({}, {"key_padding_mask": PADDED}),
        ({"batch_first": True}, {"attn_mask": CAUSAL, "key_padding_mask": PADDED}),
    ],
)
def test_self_attention(agree, options, call, need_weights, dtype):
    layer, reference = pair("MultiheadAttention", 12, 3, dtype=dtype, **options)
    x = randn(*((3, 5, 12) if "batch_first" in options else (5, 3, 12)), dtype=dtype)

    def same(module):
        def attend(x, **options):
            return module(x, x, x, need_weights=need_weights, **options)

        attend.parameters = module.parameters
        return attend

    assert_alike(agree, "nn.MultiheadAttention", same(layer), same(reference), [x], call)


@DTYPES
@pytest.mark.parametrize(
    ("options", "shapes"),
    [
        ({"kdim": 7, "vdim": 5}, [(4, 2, 6), (9, 2, 7), (9, 2, 5)]),
        ({"kdim": 7, "bias": False}, [(4, 2, 6), (9, 2, 7), (9, 2, 6)]),
        ({"batch_first": True}, [(2, 4, 6), (2, 9, 6), (2, 9, 6)]),
        ({}, [(4, 6), (9, 6), (9, 6)]),
        ({"batch_first": True, "vdim": 3}, [(1, 6), (130, 6), (130, 3)]),
    ],
)
def test_attention_to_other_sequences(agree, options, shapes, dtype):
    layer, reference = pair("MultiheadAttention", 6, 2, dtype=dtype, **options)
    inputs = [randn(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    assert_alike(agree, "nn.MultiheadAttention", layer, reference, inputs)
    mask = randn(shapes[0][-2 if "batch_first" in options else 0], 1, seed=7, dtype=dtype)
    mask = mask.expand(-1, shapes[1][-2 if "batch_first" in options else 0]).contiguous()
    options = {"attn_mask": mask, "need_weights": False}
    assert_alike(agree, "nn.MultiheadAttention", layer, reference, inputs, options)


def test_a_mask_for_each_head_and_sample(agree):
    layer, reference = pair("MultiheadAttention", 6, 2)
    inputs = [randn(4, 3, 6), randn(5, 3, 6, seed=1), randn(5, 3, 6, seed=2)]
    mask = randn(6, 4, 5, seed=3) > 1
    for options in ({"attn_mask": mask}, {"attn_mask": mask, "need_weights": False}):
        assert_alike(agree, "nn.MultiheadAttention", layer, reference, inputs, options)


@DTYPES
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_encoder_layer(agree, norm_first, activation, batch_first, dtype):
    layer, reference = pair(
        "TransformerEncoderLayer", 12, 3, 17, 0.0, activation, 1e-5, batch_first, norm_first,
        dtype=dtype,
    )  # fmt: skip
    x = randn(*((3, 5, 12) if batch_first else (5, 3, 12)), dtype=dtype)
    name = "nn.TransformerEncoderLayer"
    assert_alike(agree, name, layer, reference, [x])
    masks = {"src_mask": CAUSAL, "src_key_padding_mask": PADDED}
    assert_alike(agree, name, layer, reference, [x], masks)
    assert_alike(agree, name, layer, reference, [x], {"src_mask": CAUSAL, "is_causal": True})


@DTYPES
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_decoder_layer(agree, norm_first, bias, dtype):
    layer, reference = pair(
        "TransformerDecoderLayer", 12, 3, 17, 0.0, "gelu", 1e-5, True, norm_first, bias,
        dtype=dtype,
    )  # fmt: skip
    x, memory = randn(3, 4, 12, dtype=dtype), randn(3, 5, 12, dtype=dtype, seed=1)
    name = "nn.TransformerDecoderLayer"
    assert_alike(agree, name, layer, reference, [x, memory])
    masks = {
        "tgt_mask": CAUSAL[:4, :4],
        "tgt_is_causal": True,
        "memory_mask": randn(4, 5, seed=2) > 1,
        "memory_key_padding_mask": PADDED,
    }
    assert_alike(agree, name, layer, reference, [x, memory], masks)


def test_stacks_have_the_names_and_results_of_torch(agree):
    def stack(module, dtype):
        layer = module.TransformerEncoderLayer(12, 3, 17, 0.0)
        made = module.TransformerEncoder(layer, 3, module.LayerNorm(12), False).to(dtype)
        layer = module.TransformerDecoderLayer(12, 3, 17, 0.0)
        return made, module.TransformerDecoder(layer, 2).to(dtype)

    x, memory = randn(5, 3, 12), randn(6, 3, 12, seed=1)
    torch.manual_seed(0)
    encoder, decoder = stack(torch.nn, torch.float64)
    ours_encoder, ours_decoder = stack(nn, engine.float64)
    copy_weights(ours_encoder, encoder)
    copy_weights(ours_decoder, decoder)
    masks = {"mask": CAUSAL, "src_key_padding_mask": PADDED}
    name = "nn.TransformerEncoder"
    assert_alike(agree, name, ours_encoder, encoder, [x], masks, terms=1 << 14)
    masks = {"tgt_mask": CAUSAL, "tgt_key_padding_mask": PADDED}
    name = "nn.TransformerDecoder"
    assert_alike(agree, name, ours_decoder, decoder, [x, memory], masks, terms=1 << 14)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer(agree, norm_first):
    sizes = (12, 3, 2, 2, 17, 0.0)
    options = {"norm_first": norm_first, "batch_first": True}
    layer, reference = pair("Transformer", *sizes, **options)
    inputs = [randn(3, 5, 12), randn(3, 4, 12, seed=1)]
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    agree(
        "nn.Transformer",
        nn.Transformer.generate_square_subsequent_mask(4, dtype=engine.float64),
        mask,
    )
    masks = {"tgt_mask": mask, "src_key_padding_mask": PADDED, "memory_key_padding_mask": PADDED}
    assert_alike(agree, "nn.Transformer", layer, reference, inputs, masks, terms=1 << 14)


@pytest.mark.parametrize("options", [{}, {"kdim": 50, "vdim": 70}])
def test_first_weights_are_spread_as_in_torch(options):
    torch.manual_seed(0)
    reference = torch.nn.MultiheadAttention(60, 4, **options)
    layer = nn.MultiheadAttention(60, 4, **options)
    for (name, mine), theirs in zip(layer.named_parameters(), reference.parameters(), strict=True):
        spread, wanted = mine.abs().amax().item(), theirs.abs().max().item()
        assert math.isclose(spread, wanted, rel_tol=0.02, abs_tol=0), name
