"""The tensors that config.json says there are: compared before a model of its sizes is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradcli.errors import CheckpointError
from gradcli.train.published.names import HEAD
from gradcli.train.published.shape import FILE, Shape
from gradcli.train.safetensors_file import Stored

NamedSize = tuple[str, tuple[int, ...]]
# Of these the first rows are taken.
_LEADING = ("wte.weight", "wpe.weight", "model.embed_tokens.weight", HEAD)


def check_sizes(shape: Shape, tensors: Mapping[str, Stored], source: str) -> None:
    """Refuse the first tensor that is missing or of another size; messages name the `source`.

    config.json may ask for any size, and the weights lie in a file: nothing is built for it.

    Raises:
        CheckpointError: there is such a tensor.
    """
    for name, size in (_of_gpt2 if shape.kind == "gpt2" else _of_llama)(shape):
        if name not in tensors:
            what = f"{source} lacks {name} {list(size)}, which {FILE} asks for"
            raise CheckpointError(what, code="E704")
        there, more = tensors[name].shape, name in _LEADING
        if more and len(there) == len(size):
            fits = there[0] >= size[0] and there[1:] == size[1:]
        else:
            fits = there == size
        if not fits:
            asks = f"{FILE} asks for {list(size)}{' or more rows' if more else ''}"
            raise CheckpointError(f"{source}: {name} is {list(there)} there, {asks}", code="E704")


def _of_gpt2(shape: Shape) -> Iterator[NamedSize]:
    width, inner = shape.width, shape.inner
    yield "wte.weight", (shape.vocab, width)
    yield "wpe.weight", (shape.context, width)
    layers = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
    layers |= {"mlp.c_fc": (width, inner), "mlp.c_proj": (inner, width)}
    for i in range(shape.layers):
        for norm in ("ln_1", "ln_2"):
            yield from _with_bias(f"h.{i}.{norm}", (width,))
        for name, size in layers.items():
            yield from _with_bias(f"h.{i}.{name}", size)
    yield from _with_bias("ln_f", (width,))
    yield from _head(shape)


def _with_bias(name: str, size: tuple[int, ...]) -> Iterator[NamedSize]:
    yield f"{name}.weight", size
    yield f"{name}.bias", size[-1:]


def _of_llama(shape: Shape) -> Iterator[NamedSize]:
    width, inner = shape.width, shape.inner
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norms = dict.fromkeys(("input_layernorm", "post_attention_layernorm"), width)
    if shape.qk_norm:
        norms |= dict.fromkeys(("self_attn.q_norm", "self_attn.k_norm"), shape.head_dim)
    rows = {"self_attn.q_proj": queries, "self_attn.k_proj": keys, "self_attn.v_proj": keys}
    layers = {name: (count, width) for name, count in rows.items()}
    layers |= {"self_attn.o_proj": (width, queries), "mlp.down_proj": (width, inner)}
    layers |= {"mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width)}
    yield "model.embed_tokens.weight", (shape.vocab, width)
    for i in range(shape.layers):
        inside = f"model.layers.{i}"
        for name, size in norms.items():
            yield f"{inside}.{name}.weight", (size,)
        for name, sides in layers.items():
            yield f"{inside}.{name}.weight", sides
        for name, count in rows.items() if shape.qkv_bias else ():
            yield f"{inside}.{name}.bias", (count,)
    yield "model.norm.weight", (width,)
    yield from _head(shape)


def _head(shape: Shape) -> Iterator[NamedSize]:
    if not shape.tied:
        yield HEAD, (shape.vocab, shape.width)
