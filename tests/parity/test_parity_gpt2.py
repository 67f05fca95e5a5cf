"""GPT-2 with published names: our model computes what the paper's formulas give in torch."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import close, ours  # noqa: E402

from gradcli.engine import nn  # noqa: E402
from gradcli.errors import CheckpointError  # noqa: E402
from gradcli.train.gpt2 import load_gpt2  # noqa: E402
from gradcli.train.safetensors_file import Stored, encode_header, layout  # noqa: E402

pytestmark = pytest.mark.parity
VOCAB, CONTEXT, WIDTH, HEADS, LAYERS = 29, 10, 12, 3, 2


def published():
    """Random weights under the names and in the layout of the published file."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"wte.weight": (VOCAB, WIDTH), "wpe.weight": (CONTEXT, WIDTH)}
    for i in range(LAYERS):
        shapes |= {
            f"h.{i}.ln_1.weight": (WIDTH,),
            f"h.{i}.ln_1.bias": (WIDTH,),
            f"h.{i}.attn.bias": (1, 1, CONTEXT, CONTEXT),
            f"h.{i}.attn.c_attn.weight": (WIDTH, 3 * WIDTH),
            f"h.{i}.attn.c_attn.bias": (3 * WIDTH,),
            f"h.{i}.attn.c_proj.weight": (WIDTH, WIDTH),
            f"h.{i}.attn.c_proj.bias": (WIDTH,),
            f"h.{i}.ln_2.weight": (WIDTH,),
            f"h.{i}.ln_2.bias": (WIDTH,),
            f"h.{i}.mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
            f"h.{i}.mlp.c_fc.bias": (4 * WIDTH,),
            f"h.{i}.mlp.c_proj.weight": (4 * WIDTH, WIDTH),
            f"h.{i}.mlp.c_proj.bias": (WIDTH,),
        }
    shapes |= {"ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,)}
    return {name: torch.randn(shape, generator=generator) / 2 for name, shape in shapes.items()}


def write(path: Path, tensors) -> Path:
    stored = {
        name: Stored("F32", tuple(x.shape), x.contiguous().numpy().tobytes())
        for name, x in tensors.items()
    }
    data = b"".join(bytes(stored[name].data) for name in layout(stored))
    path.write_bytes(encode_header(stored, {}) + data)
    return path


def forward(w, tokens):
    """Radford et al. 2019, written out."""
    functional = torch.nn.functional

    def norm(x, name):
        return functional.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"])

    def project(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    steps = tokens.shape[1]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:steps]
    hidden = torch.full((steps, steps), -torch.inf).triu(1)
    for i in range(LAYERS):
        parts = project(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(WIDTH, -1)
        q, k, v = (p.view(*tokens.shape, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        weights = (q @ k.mT / (WIDTH // HEADS) ** 0.5 + hidden).softmax(-1)
        heads = (weights @ v).transpose(1, 2).reshape(x.shape)
        x = x + project(heads, f"h.{i}.attn.c_proj")
        inner = functional.gelu(
            project(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh"
        )
        x = x + project(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def model():
    blocks = [
        nn.TransformerBlock(nn.SelfAttention(WIDTH, HEADS), 4 * WIDTH, "gelu_tanh")
        for _ in range(LAYERS)
    ]
    made = nn.Sequential(
        nn.Embedding(VOCAB, WIDTH),
        nn.Positions(CONTEXT, WIDTH),
        nn.Sequential(*blocks),
        nn.LayerNorm(WIDTH),
        nn.Linear(WIDTH, VOCAB, bias=False),
    )
    made[4].weight = made[0].weight
    return made


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_published_weights_give_the_published_function(tmp_path, prefix):
    weights = published()
    named = {prefix + name: x for name, x in weights.items()}
    if prefix:
        named["lm_head.weight"] = weights["wte.weight"]
    made = model()
    load_gpt2(made, write(tmp_path / "gpt2.safetensors", named))
    tokens = torch.randint(0, VOCAB, (2, 9), generator=torch.Generator().manual_seed(1))
    close(made(ours(tokens)), forward(weights, tokens), terms=2048)


def test_what_does_not_fit_is_listed_and_nothing_is_copied(tmp_path):
    weights = published()
    del weights["ln_f.bias"]
    weights["h.1.mlp.c_fc.weight"] = weights["h.1.mlp.c_fc.weight"].T
    weights["h.2.ln_1.bias"] = weights["h.1.ln_1.bias"]
    made = model()
    before = made[0].weight.tolist()
    with pytest.raises(CheckpointError, match="3 tensors do not fit") as caught:
        load_gpt2(made, write(tmp_path / "gpt2.safetensors", weights))
    assert caught.value.notes == (
        "missing: ln_f.bias [12]",
        "h.1.mlp.c_fc.weight: the file has F32[48, 12], the model needs F32[12, 48]",
        "not in the model: h.2.ln_1.bias",
    )
    assert made[0].weight.tolist() == before


def test_other_models_and_files_are_refused(tmp_path):
    path = write(tmp_path / "gpt2.safetensors", published())
    with pytest.raises(CheckpointError, match="GPT-2 has one Positions beside its blocks"):
        load_gpt2(nn.Sequential(nn.Embedding(3, 4), nn.LayerNorm(4)), path)
    with pytest.raises(CheckpointError, match="cannot read"):
        load_gpt2(model(), tmp_path / "none.safetensors")
    path.write_bytes(b"PK\x03\x04 a pickle in a zip archive")
    with pytest.raises(CheckpointError):
        load_gpt2(model(), path)
