"""Blocks of today's language models, written in torch under their own names, and ours."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import ours, randn, theirs  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity
BATCH, STEPS, WIDTH, INNER, VOCAB = 3, 11, 20, 33, 17


def half_turned(x, base):
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), rates)
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(torch.nn.Module):
    def __init__(self, heads, shared, size, bias, qk_norm):
        super().__init__()
        self.heads, self.shared, self.size, self.qk_norm = heads, shared, size, qk_norm
        self.q_proj = torch.nn.Linear(WIDTH, heads * size, bias=bias)
        self.k_proj = torch.nn.Linear(WIDTH, shared * size, bias=bias)
        self.v_proj = torch.nn.Linear(WIDTH, shared * size, bias=bias)
        self.o_proj = torch.nn.Linear(heads * size, WIDTH, bias=False)
        if qk_norm == "rms":
            self.q_norm, self.k_norm = (torch.nn.RMSNorm(size, 1e-6) for _ in range(2))

    def forward(self, x, base):
        batch, steps, _ = x.shape
        q = self.q_proj(x).view(batch, steps, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, steps, self.shared, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, steps, self.shared, self.size).transpose(1, 2)
        if self.qk_norm == "rms":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = half_turned(q, base), half_turned(k, base)
        if self.qk_norm == "rms_plain":  # behind the turn, as nanochat has it
            q, k = (F.rms_norm(y, (self.size,), eps=1e-6) for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Gated(torch.nn.Module):
    """Llama's network."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down_proj = torch.nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Squared(torch.nn.Module):
    """nanochat's network."""

    def __init__(self):
        super().__init__()
        self.c_fc = torch.nn.Linear(WIDTH, INNER, bias=False)
        self.c_proj = torch.nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.c_proj(F.relu(self.c_fc(x)).square())


class Reference(torch.nn.Module):
    def __init__(self, base, heads, shared, size, bias, qk_norm, network, plain, cap):
        super().__init__()
        self.base, self.cap = base, cap
        self.embed = torch.nn.Embedding(VOCAB, WIDTH)
        self.attention = Attention(heads, shared, size, bias, qk_norm)
        self.mlp = network()
        self.norms = torch.nn.ModuleList(
            torch.nn.RMSNorm(WIDTH, 1e-6, elementwise_affine=not plain) for _ in range(3)
        )
        self.head = torch.nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.attention(self.norms[0](x), self.base)
        x = x + self.mlp(self.norms[1](x))
        logits = self.head(self.norms[2](x))
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def joined(reference):
    """The reference's weights under our names."""
    state = reference.state_dict()
    join = {
        "1.attention.qkv": ["attention.q_proj", "attention.k_proj", "attention.v_proj"],
        "1.attention.out": ["attention.o_proj"],
        "1.attention.q_norm": ["attention.q_norm"],
        "1.attention.k_norm": ["attention.k_norm"],
        "1.mlp.0": ["mlp.gate_proj", "mlp.up_proj"]
        if "mlp.up_proj.weight" in state
        else ["mlp.c_fc"],
        "1.mlp.2": ["mlp.down_proj"] if "mlp.up_proj.weight" in state else ["mlp.c_proj"],
        "0": ["embed"],
        "1.norm1": ["norms.0"],
        "1.norm2": ["norms.1"],
        "2": ["norms.2"],
        "3": ["head"],
    }
    return {
        f"{name}.{part}": ours(torch.cat([state[f"{source}.{part}"] for source in sources]))
        for name, sources in join.items()
        for part in ("weight", "bias")
        if f"{sources[0]}.{part}" in state
    }


MODELS = {
    "llama": ((5e5, 5, 1, 4, False, "none", Gated, False, None), "swiglu"),
    "qwen2": ((1e6, 5, 5, 4, True, "none", Gated, False, None), "swiglu"),
    "qwen3": ((1e6, 4, 2, 6, False, "rms", Gated, False, None), "swiglu"),
    "nanochat": ((1e4, 5, 5, 4, False, "rms_plain", Squared, True, 15.0), "relusquared"),
}


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients_are_those_of_torch(name):
    options, activation = MODELS[name]
    base, heads, shared, size, bias, qk_norm, _, plain, cap = options
    torch.manual_seed(1)
    reference = Reference(*options)
    with torch.no_grad():
        for i, p in enumerate(reference.parameters()):
            p.add_(0.3 * randn(*p.shape, dtype=p.dtype, seed=i))
    attention = nn.SelfAttention(
        WIDTH, heads, shared, rotary_steps=16, rotary_base=base, rotary_form="half", bias=False,
        head_dim=size, qkv_bias=bias, qk_norm=qk_norm, eps=1e-6,
    )  # fmt: skip
    block = nn.TransformerBlock(
        attention, INNER, activation, eps=1e-6, bias=False,
        norm_kind="rms_plain" if plain else "rms",
    )  # fmt: skip
    model = nn.Sequential(
        nn.Embedding(VOCAB, WIDTH),
        block,
        nn.RMSNorm(WIDTH, 1e-6, elementwise_affine=not plain),
        nn.Linear(WIDTH, VOCAB, bias=False),
        *([] if cap is None else [nn.SoftCap(cap)]),
    )
    weights = joined(reference)
    assert set(weights) == set(model.state_dict())
    model.load_state_dict(weights)
    tokens = torch.randint(0, VOCAB, (BATCH, STEPS), generator=torch.Generator().manual_seed(2))
    logits, our_logits = reference(tokens), model(ours(tokens))
    assert (theirs(our_logits) - logits).abs().max() < 1e-5
    grad = randn(*logits.shape, dtype=torch.float32, seed=5)
    logits.backward(grad)
    our_logits.backward(ours(grad))
    embedded = theirs(model[0].weight.grad)
    largest = reference.embed.weight.grad.abs().max()
    assert (embedded - reference.embed.weight.grad).abs().max() < 1e-5 * largest
    first = theirs(model[1].attention.qkv.weight.grad)
    parts = [getattr(reference.attention, f"{one}_proj").weight.grad for one in "qkv"]
    assert (first - torch.cat(parts)).abs().max() < 1e-5 * torch.cat(parts).abs().max()
