"""SelfAttention and TransformerBlock: what GPTs are made of. torch has no names for them."""

from __future__ import annotations

__all__ = ["SelfAttention", "TransformerBlock"]

from collections.abc import Callable
from typing import Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Portion
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.activation import GELU, ReLU
from gradcli.engine.nn.attention import check_heads
from gradcli.engine.nn.containers import Sequential
from gradcli.engine.nn.dropout import Dropout
from gradcli.engine.nn.key_value_cache import StatefulModule
from gradcli.engine.nn.layer_norm import LayerNorm
from gradcli.engine.nn.linear import Linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.positions import RotaryEmbedding
from gradcli.engine.nn.steps import step_by_step, unless_random
from gradcli.engine.ops.creation.creation import ones
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

ACTIVATIONS: dict[str, Callable[[], Module]] = {
    "relu": ReLU,
    "gelu": GELU,
    "gelu_tanh": lambda: GELU("tanh"),
}


def _obstacle(layer: SelfAttention) -> str:
    """Why a layer does not work step by step; "" where it does."""
    if not layer.causal:
        return "sees later steps, causal is False"
    return unless_random(layer, layer.dropout)


class SelfAttention(StatefulModule):
    """Each step of (batch, steps, dim) becomes an average of steps, by likeness, head by head.

    One matrix gives queries, keys and values, another joins the heads. With `causal` a step sees
    itself and those before it. With `kv_heads` groups of heads share keys and values (Ainslie et
    al. 2023). With `rotary_steps` queries and keys are turned by their positions (Su et al. 2021),
    of which there are so many.
    """

    def __init__(
        self,
        dim: Count,
        heads: Count,
        kv_heads: Count | None = None,
        causal: bool = True,
        dropout: Portion = 0.0,
        rotary_steps: Count | None = None,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.head_dim = check_heads("SelfAttention", dim, heads)
        shared = heads if kv_heads is None else kv_heads
        if heads % shared:
            raise OptionError(f"SelfAttention: kv_heads {shared} must divide heads {heads} evenly")
        self.dim = dim
        self.heads = heads
        self.kv_heads = shared
        self.causal = causal
        self.dropout = dropout
        if rotary_steps is not None and self.head_dim % 2:
            raise OptionError(
                "SelfAttention: rotary positions need an even number of features a head, "
                f"got {self.head_dim}"
            )
        width = (heads + 2 * shared) * self.head_dim
        self.qkv = Linear(dim, width, bias=bias, dtype=dtype)
        self.out = Linear(dim, dim, bias=bias, dtype=dtype)
        self.register_module("rotary", None)
        if rotary_steps is not None:
            self.rotary = RotaryEmbedding(self.head_dim, rotary_steps, dtype=dtype)

    @step_by_step(unless=_obstacle, answers_for=["rotary"])
    def forward(self, input: Tensor) -> Tensor:
        """The same shape."""
        if input.ndim != 3 or input.shape[-1] != self.dim:
            raise ShapeError(
                f"SelfAttention: input must be (batch, steps, {self.dim}), got {input.shape}"
            )
        batch, steps, _ = input.shape
        inner = self.kv_heads * self.head_dim
        parts = self.qkv(input).split([self.dim, inner, inner], -1)
        q, k, v = (p.reshape(batch, steps, -1, self.head_dim).transpose(1, 2) for p in parts)
        cache = self.cache
        if self.rotary is not None:
            before = 0 if cache is None else cache.length
            q, k = self.rotary(q, before), self.rotary(k, before)
        if cache is not None:
            k, v = cache.extend(self, k, v)
        y = self._attend(q, k, v)
        made: Tensor = self.out(y.transpose(1, 2).reshape(batch, steps, self.dim))
        return made

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Queries are the last of the steps that have keys."""
        queries, keys = q.shape[2], k.shape[2]
        mask = None
        if self.causal and keys > queries > 1:
            mask = table.tril(ones(queries, keys, dtype=dtypes.bool_), keys - queries)
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal and keys == queries,
            enable_gqa=self.kv_heads != self.heads,
        )

    def extra_repr(self) -> str:
        """The options."""
        shared = "" if self.kv_heads == self.heads else f", kv_heads={self.kv_heads}"
        return f"{self.dim}, heads={self.heads}{shared}, causal={self.causal}"


class TransformerBlock(Module):
    """Self-attention, then a network of `inner` units, each added to what it was given.

    With `norm_first` the norms stand before the two (Radford et al. 2019), otherwise behind the
    sums (Vaswani et al. 2017). Dropout acts on the weights of attention and on what is added.
    """

    def __init__(
        self,
        attention: SelfAttention,
        inner: Count,
        activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu",
        norm_first: bool = True,
        dropout: Portion = 0.0,
        eps: NotNegative = 1e-5,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        dim = attention.dim
        self.norm_first = norm_first
        self.norm1 = LayerNorm(dim, eps, bias=bias, dtype=dtype)
        self.attention = attention
        self.norm2 = LayerNorm(dim, eps, bias=bias, dtype=dtype)
        self.mlp = Sequential(
            Linear(dim, inner, bias=bias, dtype=dtype),
            ACTIVATIONS[activation](),
            Linear(inner, dim, bias=bias, dtype=dtype),
        )
        self.dropout = Dropout(dropout)

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """The same shape."""
        x = input
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            if self.norm_first:
                x = x + self.dropout(part(norm(x)))
            else:
                x = norm(x + self.dropout(part(x)))
        return x
