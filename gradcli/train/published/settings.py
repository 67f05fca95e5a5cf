"""Compare settings that shapes do not show between a model and a published one."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.engine import nn
from gradcli.engine.nn.self_attention import ACTIVATIONS
from gradcli.train.published.shape import Shape

Settings = dict[str, object]


def differences(model: nn.Module, shape: Shape) -> Iterator[str]:
    """The settings, by YAML keys, in which the model's blocks differ from a published model's.

    Windows, caps and dropout may differ: they are a choice in fine-tuning too.
    """
    theirs = _of_shape(shape)
    blocks = (module for module in model.modules() if isinstance(module, nn.TransformerBlock))
    for block in blocks:
        ours = _of_block(block)
        for key, value in theirs.items():
            if ours[key] != value:
                yield f"{key} is {ours[key]} in the model, {value} there"
        if ours != theirs:
            return


def _of_shape(shape: Shape) -> Settings:
    rotary = shape.kind == "llama"
    return {
        "heads": shape.heads,
        "kv_heads": shape.kv_heads or shape.heads,
        "norm": "pre",
        "norm_kind": "rms" if rotary else "layer",
        "activation": shape.activation,
        "eps": shape.eps,
        "alibi": False,
        "rotary_form": "half" if rotary else None,
        "rotary_base": shape.rotary_base if rotary else None,
        "qk_norm": "rms" if shape.qk_norm else "none",
    }


def _of_block(block: nn.TransformerBlock) -> Settings:
    attention = block.attention
    rotary, norm = attention.rotary, attention.q_norm
    form = None if rotary is None else "interleaved" if rotary.interleaved else "half"
    kind = "rms" if isinstance(block.norm1, nn.RMSNorm) else "layer"
    return {
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "norm": "pre" if block.norm_first else "post",
        "norm_kind": kind if block.norm1.weight is not None else f"{kind}_plain",
        "activation": _of_activation(block.mlp[1]),
        "eps": block.norm1.eps,
        "alibi": attention.slopes is not None,
        "rotary_form": form,
        "rotary_base": None if rotary is None else rotary.base,
        "qk_norm": "none" if norm is None else "rms" if norm.weight is not None else "rms_plain",
    }


def _of_activation(module: nn.Module) -> str:
    """The activation's key in YAML, if it has one."""
    names = {repr(make()): name for name, make in ACTIVATIONS.items()}
    return names.get(repr(module), repr(module))
