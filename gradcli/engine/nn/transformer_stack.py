"""Stacks of transformer layers: TransformerEncoder, TransformerDecoder and both as Transformer."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["TransformerEncoder", "TransformerDecoder", "Transformer"]

import copy
import math
from collections.abc import Callable
from typing import Annotated, Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Portion, within
from gradcli.engine.nn import init
from gradcli.engine.nn.containers import ModuleList
from gradcli.engine.nn.layer_norm import LayerNorm
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.transformer import (
    Activation,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from gradcli.engine.ops.creation.creation import full
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError

Layers = Annotated[int, within("a whole number from 0 to 10000", ge=0, le=10_000)]


def _copies(layer: Module, count: int) -> ModuleList:
    """Layers that begin with the same weights, each in memory of its own."""
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Copies of an encoder layer one after the other, perhaps with a norm behind them."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: Layers,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        del enable_nested_tensor, mask_check  # torch's roads to speed; they change no result
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.register_module("norm", norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers with the same masks; `is_causal` says that `mask` is the causal one."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer one after the other, perhaps with a norm behind them."""

    def __init__(
        self, decoder_layer: Module, num_layers: Layers, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.register_module("norm", norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """All layers with the same memory and masks."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to what the encoder gives (Vaswani et al. 2017)."""

    def __init__(
        self,
        d_model: Count = 512,
        nhead: Count = 8,
        num_encoder_layers: Layers = 6,
        num_decoder_layers: Layers = 6,
        dim_feedforward: Count = 2048,
        dropout: Portion = 0.1,
        activation: Activation = "relu",
        custom_encoder: Callable[..., Any] | None = None,
        custom_decoder: Callable[..., Any] | None = None,
        layer_norm_eps: NotNegative = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation)
        options = (layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, *options, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, *options, dtype=dtype), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All matrices spread as Glorot and Bengio (2010), as torch begins."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The shape of `tgt`; masks as MultiheadAttention takes them."""
        batch = 0 if self.batch_first else 1
        alike = src.ndim == tgt.ndim and (src.ndim == 2 or src.shape[batch] == tgt.shape[batch])
        if not alike or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: src {src.shape} and tgt {tgt.shape} must have one batch and "
                f"{quantity(self.d_model, 'number')} a step"
            )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: DType = dtypes.float32) -> Tensor:
        """-inf above the diagonal, 0 elsewhere: step i sees steps 0 to i."""
        return table.triu(full((sz, sz), -math.inf, dtype=dtype), 1)
