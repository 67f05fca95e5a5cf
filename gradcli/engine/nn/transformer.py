"""The layers of a transformer: attention and a small network, each added to its input."""

from __future__ import annotations

__all__ = ["TransformerEncoderLayer", "TransformerDecoderLayer"]

from collections.abc import Callable
from typing import ClassVar, Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Portion
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.attention import MultiheadAttention
from gradcli.engine.nn.dropout import Dropout
from gradcli.engine.nn.layer_norm import LayerNorm
from gradcli.engine.nn.linear import Linear
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor

Activation = Literal["relu", "gelu"] | Callable[[Tensor], Tensor]


def activation_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    """A function, or the one that 'relu' or 'gelu' names; copies of a layer share it."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
    function = activation if callable(activation) else functions[activation]

    def apply(x: Tensor) -> Tensor:
        return function(x)

    return apply


class _Layer(Module):
    """Attentions and a small network, each added to what it was given, with norms between them."""

    attentions: ClassVar[tuple[str, ...]]
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: Count,
        nhead: Count,
        dim_feedforward: Count = 2048,
        dropout: Portion = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: NotNegative = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
            )
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self._numbers = range(1, len(self.attentions) + 2)
        for i in self._numbers:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.register_module(f"norm{i}", norm)
        for i in self._numbers:
            self.register_module(f"dropout{i}", Dropout(dropout))
        self.activation = activation_of(activation)

    def _through(self, x: Tensor, *attend: Callable[[Tensor], Tensor]) -> Tensor:
        """The attentions and then the network, each with its own norm and dropout."""
        for i, part in zip(self._numbers, (*attend, self._feed_forward), strict=True):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x

    def _feed_forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return y


class TransformerEncoderLayer(_Layer):
    """Self-attention, then linear2(activation(linear1(x))), each added to what it was given.

    With `norm_first` the norms stand before the two, otherwise behind the sums.
    (Vaswani et al. 2017)
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The same shape; masks as MultiheadAttention takes them."""
        masks = (src_key_padding_mask, False, src_mask, True, is_causal)
        return self._through(src, lambda x: self.self_attn(x, x, x, *masks)[0])


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory`, then linear2(activation(linear1(x))), each added.

    With `norm_first` the norms stand before the three, otherwise behind the sums.
    (Vaswani et al. 2017)
    """

    attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The shape of `tgt`; masks as MultiheadAttention takes them."""
        own = (tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal)
        beside = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)
        return self._through(
            tgt,
            lambda x: self.self_attn(x, x, x, *own)[0],
            lambda x: self.multihead_attn(x, memory, memory, *beside)[0],
        )
