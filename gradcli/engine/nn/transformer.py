"""The layers of a transformer: attention and a small network, each added to its input."""

from __future__ import annotations

__all__ = ["TransformerEncoderLayer", "TransformerDecoderLayer"]

from collections.abc import Callable
from typing import Literal

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
    named: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
    chosen = activation if callable(activation) else named[activation]

    def apply(x: Tensor) -> Tensor:
        return chosen(x)

    return apply


class TransformerEncoderLayer(Module):
    """Self-attention, then linear2(activation(linear1(x))), each added to what it was given.

    With `norm_first` the norms stand before the two, otherwise behind the sums.
    (Vaswani et al. 2017)
    """

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
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation_of(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The same shape; masks as MultiheadAttention takes them."""
        masks = (src_key_padding_mask, src_mask, is_causal)
        if self.norm_first:
            src = src + self._attend(self.norm1(src), *masks)
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + self._attend(src, *masks))
        made: Tensor = self.norm2(src + self._feed_forward(src))
        return made

    def _attend(
        self, x: Tensor, padding: Tensor | None, mask: Tensor | None, causal: bool
    ) -> Tensor:
        y, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)
        made: Tensor = self.dropout1(y)
        return made

    def _feed_forward(self, x: Tensor) -> Tensor:
        y = self.linear2(self.dropout(self.activation(self.linear1(x))))
        made: Tensor = self.dropout2(y)
        return made


class TransformerDecoderLayer(Module):
    """Self-attention, attention to `memory`, then linear2(activation(linear1(x))), each added.

    With `norm_first` the norms stand before the three, otherwise behind the sums.
    (Vaswani et al. 2017)
    """

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
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
            )
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        for i in (1, 2, 3):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.register_module(f"norm{i}", norm)
        for i in (1, 2, 3):
            self.register_module(f"dropout{i}", Dropout(dropout))
        self.activation = activation_of(activation)

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
        seen = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)

        def attend(x: Tensor) -> Tensor:
            made: Tensor = self.dropout1(self.self_attn(x, x, x, *own)[0])
            return made

        def look(x: Tensor) -> Tensor:
            made: Tensor = self.dropout2(self.multihead_attn(x, memory, memory, *seen)[0])
            return made

        x = tgt
        parts = ((self.norm1, attend), (self.norm2, look), (self.norm3, self._feed_forward))
        for norm, part in parts:
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x

    def _feed_forward(self, x: Tensor) -> Tensor:
        y = self.linear2(self.dropout(self.activation(self.linear1(x))))
        made: Tensor = self.dropout3(y)
        return made
