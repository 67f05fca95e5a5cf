"""Tiny language models in the layouts of published ones: config.json, weights, a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_files import tokenizer_of

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.train.safetensors_file import RawTensor, encode_header, layout
from gradcli.train.state import bytes_of, dtype_name

Shapes = dict[str, tuple[int, ...]]
WIDTH, HEADS, LAYERS, CONTEXT = 24, 4, 2, 32
VOCAB = tokenizer_of("gpt2").get_vocab_size()

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": VOCAB,
    "n_embd": WIDTH,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_positions": CONTEXT,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": VOCAB + 5,  # more rows than tokens, as Qwen has them
    "hidden_size": WIDTH,
    "intermediate_size": 40,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "rope_theta": 5000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "rope_scaling": None,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": {**LLAMA, "model_type": "mistral", "sliding_window": 7},
    "qwen2": {**LLAMA, "model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {**LLAMA, "model_type": "qwen3", "head_dim": 10, "num_key_value_heads": 1},
}


def shapes_of(config: Mapping[str, Any]) -> Shapes:
    """Published names and shapes of the tensors of such a model."""
    return _of_gpt2(config) if config["model_type"] == "gpt2" else _of_llama(config)


def _of_gpt2(config: Mapping[str, Any]) -> Shapes:
    width = config["n_embd"]
    shapes: Shapes = {"wte.weight": (config["vocab_size"], width)}
    shapes["wpe.weight"] = (config["n_positions"], width)
    sizes = {"attn.c_attn": 3, "attn.c_proj": 1, "mlp.c_fc": 4, "mlp.c_proj": 1}
    for i in range(config["n_layer"]):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{norm}.{part}": (width,) for part in ("weight", "bias")}
        for name, times in sizes.items():
            inner = 4 * width if name == "mlp.c_proj" else width
            shapes[f"h.{i}.{name}.weight"] = (inner, times * width)
            shapes[f"h.{i}.{name}.bias"] = (times * width,)
    return shapes | {f"ln_f.{part}": (width,) for part in ("weight", "bias")}


def _of_llama(config: Mapping[str, Any]) -> Shapes:
    width, inner, vocab = (
        config[key] for key in ("hidden_size", "intermediate_size", "vocab_size")
    )
    heads, kind = config["num_attention_heads"], config["model_type"]
    head = config.get("head_dim", width // heads)
    rows = {"q": heads * head, "k": config["num_key_value_heads"] * head}
    rows["v"] = rows["k"]
    shapes: Shapes = {"model.embed_tokens.weight": (vocab, width)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        for letter, count in rows.items():
            shapes[f"{layer}.self_attn.{letter}_proj.weight"] = (count, width)
            if kind == "qwen2":
                shapes[f"{layer}.self_attn.{letter}_proj.bias"] = (count,)
        if kind == "qwen3":
            shapes |= {f"{layer}.self_attn.{x}_norm.weight": (head,) for x in "qk"}
        shapes |= {
            f"{layer}.self_attn.o_proj.weight": (width, heads * head),
            f"{layer}.mlp.gate_proj.weight": (inner, width),
            f"{layer}.mlp.up_proj.weight": (inner, width),
            f"{layer}.mlp.down_proj.weight": (width, inner),
            f"{layer}.input_layernorm.weight": (width,),
            f"{layer}.post_attention_layernorm.weight": (width,),
        }
    shapes["model.norm.weight"] = (width,)
    return shapes if config["tie_word_embeddings"] else shapes | {"lm_head.weight": (vocab, width)}


def weights_of(config: Mapping[str, Any], seed: int = 1) -> dict[str, Tensor]:
    """Random weights under their published names."""
    generator = engine.Generator(seed)
    return {
        name: engine.randn(*shape, generator=generator) * 0.3 + (len(shape) == 1) * 0.9
        for name, shape in shapes_of(config).items()
    }


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """A safetensors file."""
    stored = {
        name: RawTensor(dtype_name(one), tuple(one.shape), bytes_of(one))
        for name, one in weights.items()
    }
    data = b"".join(bytes(stored[name].data) for name in layout(stored))
    path.write_bytes(encode_header(stored, {}) + data)


def write_folder(
    folder: Path, config: Mapping[str, Any], *, shards: int = 1, prefix: str = ""
) -> dict[str, Tensor]:
    """A whole folder; gives its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = weights_of(config)
    named = {f"{prefix}{name}": one for name, one in weights.items()}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer_of("gpt2").to_str(), encoding="utf-8")
    if shards == 1:
        write_weights(folder / "model.safetensors", named)
        return weights
    places: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        names = list(named)[number::shards]
        write_weights(folder / file, {name: named[name] for name in names})
        places |= dict.fromkeys(names, file)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return weights
