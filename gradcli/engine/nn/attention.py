"""MultiheadAttention: several attentions side by side, with weights of their own."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["MultiheadAttention"]

import math

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, Portion
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.linear import Linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError


def check_heads(name: str, width: int, heads: int) -> int:
    """Numbers of a head; heads must share the width evenly."""
    if width % heads:
        raise OptionError(f"{name}: {quantity(heads, 'head')} must divide the width {width} evenly")
    return width // heads


def additive(name: str, mask: Tensor | None, dtype: DType) -> Tensor | None:
    """A mask as what is added to scores; of a bool one, True hides."""
    if mask is None or mask.dtype is dtype:
        return mask
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(f"{name} must be bool (True hides) or {dtype.name}, got {mask.dtype.name}")
    return table.where(mask, -math.inf, 0.0).to(dtype)


class MultiheadAttention(Module):
    """Heads of softmax(q k^T / sqrt(E)) v on projections, side by side, projected once more.

    Takes (steps, batch, width), with `batch_first` (batch, steps, width), without batch
    (steps, width); gives the result, and the weights where `need_weights`, or None.
    (Vaswani et al. 2017)
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: Count,
        num_heads: Count,
        dropout: Portion = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Count | None = None,
        vdim: Count | None = None,
        batch_first: bool = False,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise OptionError(
                "MultiheadAttention: add_bias_kv and add_zero_attn must be False; "
                "append a row to key and value instead"
            )
        self.head_dim = check_heads("MultiheadAttention", embed_dim, num_heads)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first = batch_first
        self._add_projections(bias, dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.reset_parameters()

    def _add_projections(self, bias: bool, dtype: DType) -> None:
        """One matrix where q, k and v are equally wide, otherwise three, as torch names them."""
        width = self.embed_dim
        same = self.kdim == width == self.vdim
        rows = {"q_proj_weight": width, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        whole = Parameter(empty(3 * width, width, dtype=dtype)) if same else None
        self.register_parameter("in_proj_weight", whole)
        for name, columns in rows.items():
            part = None if same else Parameter(empty(width, columns, dtype=dtype))
            self.register_parameter(name, part)
        self.register_parameter(
            "in_proj_bias", Parameter(empty(3 * width, dtype=dtype)) if bias else None
        )

    def reset_parameters(self) -> None:
        """Projections spread as Glorot and Bengio (2010), biases 0, as torch begins."""
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The averages of the values, and the weights of the averages.

        `key_padding_mask` (batch, keys) and `attn_mask` (queries, keys) or (batch * heads, queries,
        keys) are bool, where True hides, or are added. `is_causal` says that `attn_mask` is the
        causal one, which then need not be read.
        """
        batched = query.ndim == 3
        self._check_inputs(query, key, value)
        if is_causal and attn_mask is None:
            raise OptionError("MultiheadAttention: is_causal needs the attn_mask that it describes")
        dim = 0 if self.batch_first else 1
        if not batched:
            query, key, value = (x.unsqueeze(dim) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        q, k, v = (self._heads(x) for x in self._projected(query, key, value))
        causal = is_causal and key_padding_mask is None and not need_weights
        mask = None if causal else self._mask(q, k, key_padding_mask, attn_mask)
        if need_weights:
            y, weights = self._with_weights(q, k, v, mask)
            if average_attn_weights:
                weights = weights.mean(1)
            weights = weights if batched else weights.squeeze(0)
        else:
            weights = None
            dropped = self.dropout if self.training else 0.0
            y = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropped, is_causal=causal)
        y = y.permute(0, 2, 1, 3) if self.batch_first else y.permute(2, 0, 1, 3)
        out = self.out_proj(y.reshape(*y.shape[:2], self.embed_dim))
        return out if batched else out.squeeze(dim), weights

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        inputs = (query, key, value)
        widths = (self.embed_dim, self.kdim, self.vdim)
        fits = all(
            x.ndim == query.ndim and x.shape[-1] == w for x, w in zip(inputs, widths, strict=True)
        )
        if query.ndim not in (2, 3) or not fits or key.shape[:-1] != value.shape[:-1]:
            order = "(batch, steps, width)" if self.batch_first else "(steps, batch, width)"
            raise ShapeError(
                f"MultiheadAttention: query {query.shape}, key {key.shape} and value {value.shape} "
                f"must be {order} or (steps, width), of widths {widths}, "
                "key and value of equal length"
            )

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """q, k and v; one product where all three are the same tensor."""
        width, bias = self.embed_dim, self.in_proj_bias
        if self.in_proj_weight is not None and query is key is value:
            return list(F.linear(query, self.in_proj_weight, bias).split(width, -1))
        if self.in_proj_weight is not None:
            weights = list(self.in_proj_weight.split(width, 0))
        else:
            separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            weights = [weight for weight in separate if weight is not None]
        biases = [None] * 3 if bias is None else bias.split(width, 0)
        rows = zip((query, key, value), weights, biases, strict=True)
        return [F.linear(x, weight, part) for x, weight, part in rows]

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, heads, steps, numbers of a head), a view."""
        wide = x.reshape(*x.shape[:2], self.num_heads, self.head_dim)
        return wide.permute(0, 2, 1, 3) if self.batch_first else wide.permute(1, 2, 0, 3)

    def _mask(
        self, q: Tensor, k: Tensor, padding: Tensor | None, mask: Tensor | None
    ) -> Tensor | None:
        """Both masks as one that is added to (batch, heads, queries, keys)."""
        (batch, heads, queries, _), keys = q.shape, k.shape[2]
        padding = additive("MultiheadAttention: key_padding_mask", padding, q.dtype)
        mask = additive("MultiheadAttention: attn_mask", mask, q.dtype)
        if mask is not None and mask.ndim == 3 and mask.shape == (batch * heads, queries, keys):
            mask = mask.reshape(batch, heads, queries, keys)
        elif mask is not None and mask.shape != (queries, keys):
            raise ShapeError(
                f"MultiheadAttention: attn_mask must be ({queries}, {keys}) or "
                f"({batch * heads}, {queries}, {keys}), got {mask.shape}"
            )
        if padding is None:
            return mask
        if padding.shape != (batch, keys):
            raise ShapeError(
                f"MultiheadAttention: key_padding_mask must be ({batch}, {keys}), "
                f"got {padding.shape}"
            )
        wide = padding.reshape(batch, 1, 1, keys)
        return wide if mask is None else mask + wide

    def _with_weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The averages by way of all weights, which are given back."""
        scores = (q * math.sqrt(1 / self.head_dim)) @ k.mT
        weights = F.softmax(scores if mask is None else scores + mask, -1)
        weights = F.dropout(weights, self.dropout, self.training)
        return weights @ v, weights
