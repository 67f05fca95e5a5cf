"""SelfAttention with each of its options against the same written in plain operations of torch."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, close, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402
from gradcli.engine.nn.positions import alibi_slopes  # noqa: E402

pytestmark = pytest.mark.parity
BATCH, STEPS, WIDTH = 2, 7, 15
TERMS = 4096


def rms(x, weight, eps):
    normalized = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return normalized if weight is None else normalized * weight


def turned_half(x, base):
    """x cos + rotate_half(x) sin, as the programs around Llama have it."""
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), rates)
    angles = torch.cat([angles, angles], -1)
    half = torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1)
    return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)


def turned_pairs(x, base):
    """Neighbours as complex numbers."""
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), rates)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2).to(x.dtype)


def bias(heads, steps, options):
    """What is added to the scores of each head, query and key."""
    added = torch.zeros(heads, steps, steps)
    for head, i, j in itertools.product(range(heads), range(steps), range(steps)):
        if "alibi" in options:
            added[head, i, j] = -alibi_slopes(heads)[head] * abs(i - j)
        if options.get("causal", True) and not 0 <= i - j < options.get("window", steps):
            added[head, i, j] = -torch.inf
    return added


def attention(x, weights, heads, options):
    """What SelfAttention computes, by its documentation, step by step and head by head."""
    batch, steps, width = x.shape
    shared = options.get("kv_heads", heads)
    size = options.get("head_dim", width // heads)
    qkv = torch.nn.functional.linear(x, weights["qkv.weight"], weights.get("qkv.bias"))
    q, k, v = qkv.split([heads * size, shared * size, shared * size], -1)
    q, k, v = (y.view(batch, steps, -1, size).transpose(1, 2) for y in (q, k, v))
    if "qk_norm" in options:
        eps = options.get("eps", 1e-5)
        q, k = rms(q, weights.get("q_norm.weight"), eps), rms(k, weights.get("k_norm.weight"), eps)
    if "rotary_steps" in options:
        turned = turned_half if options.get("rotary_form") == "half" else turned_pairs
        q, k = (turned(y, options.get("rotary_base", 10000.0)) for y in (q, k))
    k, v = (y.repeat_interleave(heads // shared, 1) for y in (k, v))
    scores = q @ k.transpose(-1, -2) / size**0.5
    if "softcap" in options:
        scores = options["softcap"] * torch.tanh(scores / options["softcap"])
    y = (
        ((scores + bias(heads, steps, options)).softmax(-1) @ v)
        .transpose(1, 2)
        .reshape(batch, steps, heads * size)
    )
    return torch.nn.functional.linear(y, weights["out.weight"], weights.get("out.bias"))


CASES = [
    (3, {}),
    (3, {"rotary_steps": 9, "rotary_form": "half", "head_dim": 4}),
    (3, {"rotary_steps": STEPS, "rotary_base": 50.0, "head_dim": 6}),
    (5, {"qk_norm": "rms", "eps": 1e-6}),
    (5, {"qk_norm": "rms_plain", "rotary_steps": 8, "rotary_form": "half", "head_dim": 2}),
    (5, {"window": 1}),
    (5, {"window": 3, "kv_heads": 1}),
    (5, {"window": STEPS}),
    (3, {"softcap": 0.5}),
    (3, {"softcap": 2.0, "window": 2, "kv_heads": 1, "causal": True}),
    (3, {"softcap": 1.0, "causal": False}),
    (5, {"alibi": True}),
    (3, {"alibi": True, "causal": False, "kv_heads": 1}),
    (3, {"alibi": True, "window": 4, "softcap": 1.5}),
    (3, {"bias": False, "qkv_bias": True}),
    (3, {"qkv_bias": False, "head_dim": 7}),
]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("heads", "options"), CASES, ids=str)
def test_each_option_is_what_torch_computes(heads, options, dtype):
    engine.manual_seed(3)
    layer = nn.SelfAttention(WIDTH, heads, dtype=FLOATS[dtype], **options)
    weights = {}
    for i, (name, parameter) in enumerate(layer.named_parameters()):
        weights[name] = randn(*parameter.shape, dtype=dtype, seed=i).mul(0.4).requires_grad_()
    layer.load_state_dict({name: ours(weight) for name, weight in weights.items()})
    x = randn(BATCH, STEPS, WIDTH, dtype=dtype, seed=90).requires_grad_()
    our_x = ours(x, requires_grad=True)
    y, our_y = attention(x, weights, heads, options), layer(our_x)
    close(our_y, y, terms=TERMS)
    grad = randn(*y.shape, dtype=dtype, seed=91)
    y.backward(grad)
    our_y.backward(ours(grad))
    close(our_x.grad, x.grad, terms=TERMS)
    for name, parameter in layer.named_parameters():
        close(parameter.grad, weights[name].grad, terms=TERMS)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["qkv.weight", "qkv.bias", "out.weight", "out.bias"]),
        ({"bias": False, "qkv_bias": True}, ["qkv.weight", "qkv.bias", "out.weight"]),
        ({"qkv_bias": False}, ["qkv.weight", "out.weight", "out.bias"]),
        (
            {"bias": False, "qk_norm": "rms", "rotary_steps": 4},
            ["qkv.weight", "out.weight", "q_norm.weight", "k_norm.weight"],
        ),
        ({"bias": False, "qk_norm": "rms_plain", "alibi": True}, ["qkv.weight", "out.weight"]),
    ],
)
def test_a_checkpoint_has_the_weights_alone(options, names):
    assert list(nn.SelfAttention(12, 3, **options).state_dict()) == names


def test_slopes_are_those_of_the_paper():
    """Powers of 2^(-8 / heads); of twelve heads eight, and four between those of sixteen."""
    assert alibi_slopes(8) == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(12) == [*alibi_slopes(8), *alibi_slopes(16)[::2][:4]]
    assert alibi_slopes(1) == [2.0**-8]
