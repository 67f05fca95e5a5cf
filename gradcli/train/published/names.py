"""The published tensors that make up each tensor of a model of gradcli."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.nn.lora import is_adapter
from gradcli.errors import CheckpointError
from gradcli.train.published.shape import Kind

# The weight of the head, which tied models may store once more.
HEAD = "lm_head.weight"
Part = tuple[nn.Module, str]  # a module of the model, and the name of it there


@dataclass(frozen=True)
class TensorOrigin:
    """Where the values of a tensor come from.

    Attributes:
        names: published tensors, whose rows follow each other.
        transposed: whether they are stored as (in, out).
        leading: whether the file may have more rows, of which only the first ones are taken.
        shares: how the rows are divided among them.
    """

    names: tuple[str, ...]
    transposed: bool = False
    leading: bool = False
    shares: tuple[int, ...] = (1,)


def origins(model: nn.Module, kind: Kind) -> dict[str, TensorOrigin]:
    """The origin of every tensor of a model's state, by its name.

    Raises:
        CheckpointError: the model does not consist of embedding, blocks, norm and head.
    """
    names = {id(module): f"{name}." if name else "" for name, module in model.named_modules()}
    whole, result = _anatomy(model), {}
    attentions = [block.attention for block in whole.blocks]
    shares = {id(layer.qkv): (layer.heads, layer.kv_heads, layer.kv_heads) for layer in attentions}
    for module, there in _PARTS[kind](whole):
        for part in module.state_dict():
            if module is whole.head and part == "weight" and whole.is_tied:
                continue  # it is the embedding's
            if is_adapter(part):
                continue  # none is published with it
            result[names[id(module)] + part] = _ORIGINS[kind](
                there, part, shares.get(id(module), (1, 1))
            )
    return result


@dataclass(frozen=True)
class _Anatomy:
    embedding: nn.Embedding
    positions: nn.Positions | None
    blocks: tuple[nn.TransformerBlock, ...]
    norm: nn.Module
    head: nn.Linear

    @property
    def is_tied(self) -> bool:
        """Whether the head shares the embedding's weight."""
        return self.head.weight is self.embedding.weight


def _anatomy(model: nn.Module) -> _Anatomy:
    blocks = tuple(module for module in model.modules() if isinstance(module, nn.TransformerBlock))
    inside = {id(module) for block in blocks for module in block.modules()}
    outside = [module for module in model.modules() if id(module) not in inside]

    def only(*kinds: type[nn.Module]) -> list[nn.Module]:
        return [module for module in outside if isinstance(module, kinds)]

    embeddings, positions = only(nn.Embedding), only(nn.Positions)
    norms, heads = only(nn.LayerNorm, nn.RMSNorm), only(nn.Linear)
    if len(embeddings) != 1 or len(positions) > 1 or len(norms) != 1 or len(heads) != 1:
        raise CheckpointError(
            "pretrained: the model is no published language model: expected one embed, at most one "
            "positions, transformer blocks, one norm and one linear; `gradcli init FOLDER` writes "
            "the layers of the model in a folder",
            code="E704",
        )
    [embedding], [norm], [head] = embeddings, norms, heads
    assert isinstance(embedding, nn.Embedding)
    assert isinstance(head, nn.Linear)
    first = positions[0] if positions else None
    assert first is None or isinstance(first, nn.Positions)
    return _Anatomy(embedding, first, blocks, norm, head)


def _of_gpt2(model: _Anatomy) -> Iterator[Part]:
    yield model.embedding, "wte"
    if model.positions is not None:
        yield model.positions, "wpe"
    for i, block in enumerate(model.blocks):
        yield block.norm1, f"h.{i}.ln_1"
        yield block.attention.qkv, f"h.{i}.attn.c_attn"
        yield block.attention.out, f"h.{i}.attn.c_proj"
        yield block.norm2, f"h.{i}.ln_2"
        yield block.mlp[0], f"h.{i}.mlp.c_fc"
        yield block.mlp[2], f"h.{i}.mlp.c_proj"
    yield model.norm, "ln_f"
    yield model.head, HEAD.removesuffix(".weight")


def _of_llama(model: _Anatomy) -> Iterator[Part]:
    yield model.embedding, "model.embed_tokens"
    for i, block in enumerate(model.blocks):
        inside = f"model.layers.{i}"
        attention = block.attention
        yield block.norm1, f"{inside}.input_layernorm"
        yield attention.qkv, " ".join(f"{inside}.self_attn.{x}_proj" for x in "qkv")
        yield attention.out, f"{inside}.self_attn.o_proj"
        for norm, name in ((attention.q_norm, "q_norm"), (attention.k_norm, "k_norm")):
            if norm is not None:
                yield norm, f"{inside}.self_attn.{name}"
        yield block.norm2, f"{inside}.post_attention_layernorm"
        yield block.mlp[0], f"{inside}.mlp.gate_proj {inside}.mlp.up_proj"
        yield block.mlp[2], f"{inside}.mlp.down_proj"
    yield model.norm, "model.norm"
    yield model.head, HEAD.removesuffix(".weight")


def _origin_in_gpt2(there: str, part: str, _: tuple[int, ...]) -> TensorOrigin:
    transposed = part == "weight" and (".attn." in there or ".mlp." in there)
    return TensorOrigin((f"{there}.{part}",), transposed, there in ("wte", "wpe", "lm_head"))


def _origin_in_llama(there: str, part: str, shares: tuple[int, ...]) -> TensorOrigin:
    names = tuple(f"{prefix}.{part}" for prefix in there.split())
    leading = there in ("model.embed_tokens", "lm_head")
    return TensorOrigin(names, leading=leading, shares=shares if len(names) > 1 else (1,))


_PARTS: Mapping[Kind, Callable[[_Anatomy], Iterator[Part]]] = {
    "gpt2": _of_gpt2,
    "llama": _of_llama,
}
_ORIGINS: Mapping[Kind, Callable[[str, str, tuple[int, ...]], TensorOrigin]] = {
    "gpt2": _origin_in_gpt2,
    "llama": _origin_in_llama,
}
