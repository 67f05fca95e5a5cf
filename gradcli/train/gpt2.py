"""Published weights of GPT-2 (Radford et al. 2019) for a model of the same shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import CheckpointError
from gradcli.train.safetensors_file import Stored, read
from gradcli.train.state import as_tensor, dtype_name, readable
from gradcli.wording import quantity, verb

if TYPE_CHECKING:
    from gradcli.engine import Tensor

# Names of a block there and here; those of matrices that are stored as (in, out) first.
_TURNED = {
    "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.out",
    "mlp.c_fc": "mlp.0",
    "mlp.c_proj": "mlp.2",
}
_PLAIN = {"ln_1": "norm1", "ln_2": "norm2"}
# Masks that are no weights, and the head, which is wte once more.
_NO_WEIGHTS = re.compile(r"h\.\d+\.attn\.(masked_)?bias|lm_head\.weight")


def load_gpt2(model: nn.Module, file: Path) -> None:
    """Copy a safetensors file with GPT-2's published names into the model.

    The model is an embedding, learnt positions, transformer blocks, a layer norm and a head with
    the embedding's weight. Everything is compared before anything is copied.
    """
    stored = read(file).tensors
    given = {name.removeprefix("transformer."): one for name, one in stored.items()}
    given = {name: one for name, one in given.items() if not _NO_WEIGHTS.fullmatch(name)}
    wanted = _wanted(model)
    problems = _problems(given, wanted)
    if problems:
        raise CheckpointError(
            f"{file} is no GPT-2 of this model's shape: {quantity(len(problems), 'tensor')} "
            f"{verb(len(problems), 'does', 'do')} not fit",
            code="E704",
            notes=tuple(problems),
        )
    with engine.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(_turned(name, as_tensor(given[name])))


def _wanted(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of the model under their published names."""
    blocks = _only(model, nn.TransformerBlock)
    inside = {id(one) for block in blocks for one in block.modules()}
    ends: dict[str, tuple[type[nn.Module], str]] = {
        "wte": (nn.Embedding, "weight"),
        "wpe": (nn.Positions, "weight"),
        "ln_f": (nn.LayerNorm, "weight bias"),
    }
    wanted: dict[str, Tensor] = {}
    for name, (kind, parts) in ends.items():
        found = [one for one in _only(model, kind) if id(one) not in inside]
        if len(found) != 1:
            raise CheckpointError(
                f"GPT-2 has one {kind.__name__} beside its blocks, this model has {len(found)}",
                code="E704",
            )
        wanted.update({f"{name}.{part}": getattr(found[0], part) for part in parts.split()})
    for i, block in enumerate(blocks):
        state = block.state_dict()
        for there, here in {**_TURNED, **_PLAIN}.items():
            for part in ("weight", "bias"):
                if f"{here}.{part}" in state:
                    wanted[f"h.{i}.{there}.{part}"] = state[f"{here}.{part}"]
    return wanted


def _only(model: nn.Module, kind: type[nn.Module]) -> list[nn.Module]:
    return [one for one in model.modules() if isinstance(one, kind)]


def _is_turned(name: str) -> bool:
    return name.endswith(".weight") and any(f".{part}." in name for part in _TURNED)


def _turned(name: str, tensor: Tensor) -> Tensor:
    return tensor.T if _is_turned(name) else tensor


def _problems(given: Mapping[str, Stored], wanted: Mapping[str, Tensor]) -> list[str]:
    """What is missing, of another shape or type, or left over."""
    needed = {
        name: tensor.shape[::-1] if _is_turned(name) else tensor.shape
        for name, tensor in wanted.items()
    }
    missing = [f"missing: {name} {list(needed[name])}" for name in wanted if name not in given]
    other = [
        f"{name}: the file has {one.dtype}{list(one.shape)}, the model needs "
        f"{dtype_name(wanted[name])}{list(needed[name])}"
        for name, one in given.items()
        if name in needed and not (readable(one, wanted[name]) and one.shape == needed[name])
    ]
    extra = [f"not in the model: {name}" for name in given if name not in wanted]
    return missing + other + extra
