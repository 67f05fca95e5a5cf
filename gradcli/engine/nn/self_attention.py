"""SelfAttention and TransformerBlock: what GPTs are made of. torch has no names for them."""

from __future__ import annotations

__all__ = ["SelfAttention", "TransformerBlock"]

import math
from collections.abc import Callable
from typing import Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Portion, Positive
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.activation import GELU, GLU, ReLU, ReLUSquared, SiLU, SwiGLU
from gradcli.engine.nn.attention import check_heads
from gradcli.engine.nn.containers import Sequential
from gradcli.engine.nn.dropout import Dropout
from gradcli.engine.nn.group_norm import RMSNorm
from gradcli.engine.nn.key_value_cache import StatefulModule
from gradcli.engine.nn.layer_norm import LayerNorm
from gradcli.engine.nn.linear import Linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.positions import RotaryEmbedding, alibi_slopes
from gradcli.engine.nn.steps import step_by_step, unless_random
from gradcli.engine.ops.creation.creation import ones, tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.elementwise.activation import Cap
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

RotaryForm = Literal["interleaved", "half"]
_BASE: float = 10000.0
_FORM: RotaryForm = "interleaved"
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "relusquared", "swiglu"]
NormKind = Literal["layer", "layer_plain", "rms", "rms_plain"]
ACTIVATIONS: dict[Activation, Callable[[], Module]] = {
    "relu": ReLU,
    "gelu": GELU,
    "gelu_tanh": lambda: GELU("tanh"),
    "silu": SiLU,
    "relusquared": ReLUSquared,
    "swiglu": SwiGLU,
}


def _obstacle(layer: SelfAttention) -> str:
    """Why a layer does not work step by step; "" where it does."""
    if not layer.causal:
        return "sees later steps, causal is False"
    return unless_random(layer, layer.dropout)


class SelfAttention(StatefulModule):
    """Each step of (batch, steps, dim) becomes an average of steps, by likeness, head by head.

    One matrix gives queries, keys and values, another joins the heads. With `causal` a step sees
    itself and those before it, with `window` the window - 1 nearest of these alone (Beltagy et al.
    2020). With `kv_heads` groups of heads share keys and values (Ainslie et al. 2023).

    Args:
        rotary_steps: queries and keys are rotated by their positions (Su et al. 2021), of which
            there are so many; `rotary_base` and `rotary_form` as in RotaryEmbedding: pairs of
            neighbours, or as in Llama of numbers half a head apart.
        head_dim: numbers of a head, dim / heads where it is left out.
        qkv_bias: whether the first matrix has a bias, as `bias` says where it is left out.
        qk_norm: each head's queries and keys have a root mean square of 1, times a learnt weight
            with "rms" (Henry et al. 2020), without one with "rms_plain"; `eps` is these norms'.
        alibi: scores fall with the distance of the steps, in each head at another rate.
        softcap: a score s becomes softcap * tanh(s / softcap) (Gemma 2, 2024).
    """

    slopes: Tensor | None
    rotary: RotaryEmbedding | None
    q_norm: RMSNorm | None
    k_norm: RMSNorm | None

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
        head_dim: Count | None = None,
        qkv_bias: bool | None = None,
        rotary_base: Positive = _BASE,
        rotary_form: RotaryForm = _FORM,
        qk_norm: Literal["none", "rms", "rms_plain"] = "none",
        eps: NotNegative = 1e-5,
        alibi: bool = False,
        window: Count | None = None,
        softcap: Cap | None = None,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.head_dim = head_dim or check_heads("SelfAttention", dim, heads)
        self.dim = dim
        self.heads = heads
        self.kv_heads = kv_heads or heads
        self.causal = causal
        self.dropout = dropout
        self.window = window
        self.softcap = softcap
        if rotary_steps is None and (rotary_base, rotary_form) != (_BASE, _FORM):
            raise OptionError("SelfAttention: rotary_base and rotary_form need rotary positions")
        self._check_options(rotary_steps is not None, alibi)
        width = (heads + 2 * self.kv_heads) * self.head_dim
        qkv_bias = bias if qkv_bias is None else qkv_bias
        self.qkv = Linear(dim, width, bias=qkv_bias, dtype=dtype)
        self.out = Linear(heads * self.head_dim, dim, bias=bias, dtype=dtype)
        for name in ("rotary", "q_norm", "k_norm"):
            self.register_module(name, None)
        if rotary_steps is not None:
            interleaved = rotary_form == "interleaved"
            self.rotary = RotaryEmbedding(
                self.head_dim, rotary_steps, rotary_base, interleaved, dtype=dtype
            )
        if qk_norm != "none":
            weight = qk_norm == "rms"
            self.q_norm = RMSNorm(self.head_dim, eps, weight, dtype=dtype)
            self.k_norm = RMSNorm(self.head_dim, eps, weight, dtype=dtype)
        slopes = tensor(alibi_slopes(heads), dtype=dtype) if alibi else None
        self.register_buffer("slopes", slopes, persistent=False)

    def _check_options(self, rotary: bool, alibi: bool) -> None:
        if self.heads % self.kv_heads:
            raise OptionError(
                f"SelfAttention: kv_heads {self.kv_heads} must divide heads {self.heads} evenly"
            )
        if rotary and self.head_dim % 2:
            raise OptionError(
                "SelfAttention: rotary positions need an even number of features a head, "
                f"got {self.head_dim}"
            )
        if rotary and alibi:
            raise OptionError("SelfAttention: alibi and rotary positions exclude each other")
        if self.window is not None and not self.causal:
            raise OptionError(f"SelfAttention: window {self.window} needs causal, which is False")

    @step_by_step(unless=_obstacle, answers_for=["rotary"])
    def forward(self, input: Tensor) -> Tensor:
        """The same shape."""
        if input.ndim != 3 or input.shape[-1] != self.dim:
            raise ShapeError(
                f"SelfAttention: input must be (batch, steps, {self.dim}), got {input.shape}"
            )
        batch, steps, _ = input.shape
        width, inner = self.heads * self.head_dim, self.kv_heads * self.head_dim
        parts = self.qkv(input).split([width, inner, inner], -1)
        q, k, v = (p.reshape(batch, steps, -1, self.head_dim).transpose(1, 2) for p in parts)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        cache = self.cache
        if self.rotary is not None:
            before = 0 if cache is None else cache.length
            q, k = self.rotary(q, before), self.rotary(k, before)
        if cache is not None:
            k, v = cache.extend(self, k, v)
        y = self._attend(q, k, v)
        output: Tensor = self.out(y.transpose(1, 2).reshape(batch, steps, width))
        return output

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Queries are the last of the steps that have keys."""
        queries, keys = q.shape[2], k.shape[2]
        mask = self._visible(queries, keys)
        if self.slopes is not None:
            rates = self.slopes.to(self.slopes.dtype.computed).reshape(self.heads, 1, 1)
            bias = (rates * -_distances(queries, keys, rates.dtype)).to(q.dtype)
            mask = bias if mask is None else table.where(mask, bias, -math.inf)
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal and keys == queries and mask is None,
            enable_gqa=self.kv_heads != self.heads,
            softcap=self.softcap,
        )

    def _visible(self, queries: int, keys: int) -> Tensor | None:
        """The keys that each query sees; None for all of them, or as far as is_causal says."""
        window, past = self.window or keys, keys - queries
        plain = window >= keys and (queries == 1 or (queries == keys and self.slopes is None))
        if plain or not self.causal:
            return None
        visible = table.tril(ones(queries, keys, dtype=dtypes.bool_), past)
        return visible if window >= keys else table.triu(visible, past - window + 1)

    def extra_repr(self) -> str:
        """The options."""
        shared = "" if self.kv_heads == self.heads else f", kv_heads={self.kv_heads}"
        own = "" if self.out.in_features == self.dim else f", head_dim={self.head_dim}"
        options = {"window": self.window, "softcap": self.softcap}
        pairs = (f", {name}={value}" for name, value in options.items() if value is not None)
        rest = "".join(pairs)
        alibi = "" if self.slopes is None else ", alibi=True"
        return f"{self.dim}, heads={self.heads}{shared}{own}, causal={self.causal}{rest}{alibi}"


def _distances(queries: int, keys: int, dtype: DType) -> Tensor:
    """How many steps lie between each query and each key, queries being the last steps."""
    steps = arange(keys, dtype=dtype)
    return (steps[keys - queries :].reshape(queries, 1) - steps).abs()


def _norm(kind: NormKind, dim: int, eps: float, bias: bool, dtype: DType) -> Module:
    weight = not kind.endswith("_plain")
    if kind.startswith("rms"):
        return RMSNorm(dim, eps, weight, dtype=dtype)
    return LayerNorm(dim, eps, weight, bias, dtype=dtype)


class TransformerBlock(Module):
    """Self-attention, then a network of `inner` units, each added to what it was given.

    With `norm_first` the norms stand before the two (Radford et al. 2019), otherwise behind the
    sums (Vaswani et al. 2017); `norm_kind` says whether they are layer or RMS norms, and "_plain"
    ones have no weights. With "swiglu" the first matrix of the network gives 2 inner numbers, first
    those of the gates (Shazeer 2020). Dropout acts on the weights of attention and on what is
    added.
    """

    def __init__(
        self,
        attention: SelfAttention,
        inner: Count,
        activation: Activation = "gelu",
        norm_first: bool = True,
        dropout: Portion = 0.0,
        eps: NotNegative = 1e-5,
        bias: bool = True,
        *,
        norm_kind: NormKind = "layer",
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        dim = attention.dim
        self.norm_first = norm_first
        self.norm1 = _norm(norm_kind, dim, eps, bias, dtype)
        self.attention = attention
        self.norm2 = _norm(norm_kind, dim, eps, bias, dtype)
        between = ACTIVATIONS[activation]()
        units = 2 * inner if isinstance(between, GLU) else inner
        self.mlp = Sequential(
            Linear(dim, units, bias=bias, dtype=dtype),
            between,
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
