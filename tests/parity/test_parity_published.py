"""Published folders: logits and greedy texts are those of the papers' formulas in torch."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from published_folders import CONFIGS, write_folder  # noqa: E402

import gradcli  # noqa: E402
from gradcli import engine  # noqa: E402
from gradcli.data.bpe.tokenizer import tokenizer_at  # noqa: E402

pytestmark = pytest.mark.parity
F = torch.nn.functional


def attend(q, k, v, window=None):
    steps = q.shape[-2]
    seen = torch.ones(steps, steps, dtype=torch.bool).tril()
    if window is not None:
        seen &= torch.ones(steps, steps, dtype=torch.bool).triu(1 - window)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v


def heads_of(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def gpt2(config, w, tokens):
    """Radford et al. 2019, written out."""

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for i in range(config["n_layer"]):
        parts = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)
        y = attend(*(heads_of(part, config["n_head"]) for part in parts))
        x = x + linear(joined(y), f"h.{i}.attn.c_proj")
        inner = F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def rotated(x, base):
    """Pairs half a head apart, turned by their position (Su et al. 2021)."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64) * 2 / x.shape[-1])
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def llama(config, w, tokens):
    """Touvron et al. 2023, with what Mistral and Qwen changed."""
    eps, base = config["rms_norm_eps"], config["rope_theta"]
    count, shared = config["num_attention_heads"], config["num_key_value_heads"]
    window = config.get("sliding_window") if config["model_type"] == "mistral" else None

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w[f"{name}.weight"]

    def linear(x, name):
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        y = norm(x, f"{layer}.input_layernorm")
        q, k, v = (
            heads_of(linear(y, f"{layer}.self_attn.{part}_proj"), n)
            for part, n in (("q", count), ("k", shared), ("v", shared))
        )
        if config["model_type"] == "qwen3":
            q, k = norm(q, f"{layer}.self_attn.q_norm"), norm(k, f"{layer}.self_attn.k_norm")
        q, k = rotated(q, base), rotated(k, base)
        k, v = (part.repeat_interleave(count // shared, 1) for part in (k, v))
        x = x + linear(joined(attend(q, k, v, window)), f"{layer}.self_attn.o_proj")
        y = norm(x, f"{layer}.post_attention_layernorm")
        inner = F.silu(linear(y, f"{layer}.mlp.gate_proj")) * linear(y, f"{layer}.mlp.up_proj")
        x = x + linear(inner, f"{layer}.mlp.down_proj")
    tied = config["tie_word_embeddings"]
    head = w["model.embed_tokens.weight" if tied else "lm_head.weight"]
    return norm(x, "model.norm") @ head.T


def forward(config, weights, tokens):
    w = {name: torch.tensor(one.tolist()) for name, one in weights.items()}
    with torch.no_grad():
        return (gpt2 if config["model_type"] == "gpt2" else llama)(config, w, tokens)


@pytest.mark.parametrize("kind", CONFIGS)
def test_logits_and_greedy_tokens_are_those_of_torch(kind: str, tmp_path: Path) -> None:
    config = CONFIGS[kind]
    weights = write_folder(tmp_path, config, shards=1 + (kind != "gpt2"))
    model, tokenizer = gradcli.load(tmp_path), tokenizer_at(tmp_path)
    tokens = torch.randint(0, tokenizer.vocab, (2, 19), generator=torch.Generator().manual_seed(1))
    expected = forward(config, weights, tokens)[..., : tokenizer.vocab]
    with engine.no_grad():
        logits = torch.tensor(model.model(engine.tensor(tokens.tolist())).tolist())
    assert (logits - expected).abs().max() <= 1e-5 * expected.abs().max()
    text = tokenizer.encode("The old king")
    for _ in range(12):
        logits = forward(config, weights, torch.tensor([text]))[0, -1, : tokenizer.vocab]
        text.append(int(logits.argmax()))
    written = model.generate("The old king", 12, temperature=0)
    assert tokenizer.decode(text[-12:]).startswith(written.rstrip("\ufffd"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_half_the_width_are_read(dtype: str, tmp_path: Path) -> None:
    from published_folders import write_weights

    config = CONFIGS["llama"]
    weights = write_folder(tmp_path, config)
    half = {
        name: torch.tensor(one.tolist()).to(getattr(torch, dtype)) for name, one in weights.items()
    }
    if dtype == "bfloat16":
        path = tmp_path / "model.safetensors"
        write_weights(path, {name: one.to(engine.bfloat16) for name, one in weights.items()})
    else:
        save = pytest.importorskip("safetensors.numpy").save_file
        named = {name: one.numpy() for name, one in half.items()}
        save(named, tmp_path / "model.safetensors")
    rounded = {name: engine.tensor(one.float().tolist()) for name, one in half.items()}
    model, tokenizer = gradcli.load(tmp_path), tokenizer_at(tmp_path)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    expected = forward(config, rounded, tokens)[..., : tokenizer.vocab]
    with engine.no_grad():
        logits = torch.tensor(model.model(engine.tensor(tokens.tolist())).tolist())
    assert (logits - expected).abs().max() <= 1e-5 * expected.abs().max()
