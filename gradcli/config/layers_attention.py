"""Layers of transformers, on sequences (steps x features). See layers.py for the form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gradcli.config.fields import Units
from gradcli.config.signal import Fitted, Signal, floats
from gradcli.engine.kind import Count, Positive, Share
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


def positions(x: Signal, *, std: Positive = 0.02) -> Fitted:
    """A learnt row for each step, added to it."""
    steps, features = _sequence(x)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Positions(steps, features, std)

    return Fitted(x, steps * features, make)


def attention(
    x: Signal,
    heads: Count,
    *,
    kv_heads: Count | None = None,
    causal: bool = True,
    dropout: Share = 0.0,
    rotary: bool = False,
    bias: bool = True,
) -> Fitted:
    """Each step becomes an average of steps, by likeness; several heads side by side."""
    steps, features = _sequence(x)
    shared = _shared_heads(features, heads, kv_heads, rotary)

    def make() -> nn.Module:
        from gradcli.engine import nn

        turned = steps if rotary else None
        return nn.SelfAttention(features, heads, shared, causal, dropout, turned, bias)

    return Fitted(x, _attention_parameters(features, heads, shared, bias), make)


def transformer(
    x: Signal,
    heads: Count,
    *,
    mlp: Units = "4x",
    norm: Literal["pre", "post"] = "pre",
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu",
    causal: bool = True,
    dropout: Share = 0.0,
    kv_heads: Count | None = None,
    rotary: bool = False,
    bias: bool = True,
    eps: Positive = 1e-5,
) -> Fitted:
    """Attention and a network of two linear layers, each with a norm and added to its input."""
    steps, features = _sequence(x)
    shared = _shared_heads(features, heads, kv_heads, rotary)
    inner = mlp if isinstance(mlp, int) else int(mlp.removesuffix("x")) * features

    def make() -> nn.Module:
        from gradcli.engine import nn

        turned = steps if rotary else None
        inside = nn.SelfAttention(features, heads, shared, causal, dropout, turned, bias)
        return nn.TransformerBlock(inside, inner, activation, norm == "pre", dropout, eps, bias)

    ends = 1 if bias else 0
    of_mlp = 2 * features * inner + ends * (inner + features)
    of_norms = 2 * (1 + ends) * features
    of_heads = _attention_parameters(features, heads, shared, bias)
    return Fitted(x, of_heads + of_mlp + of_norms, make)


def _sequence(x: Signal) -> tuple[int, int]:
    if len(floats(x).shape) != 2:
        raise ShapeError(f"needs sequences (steps x features), got {x}")
    steps, features = x.shape
    return steps, features


def _shared_heads(features: int, heads: int, kv_heads: int | None, rotary: bool) -> int:
    """The heads of keys and values, after a look at whether the heads fit."""
    if features % heads:
        raise ShapeError(f"{heads} heads do not divide the {features} features evenly")
    if kv_heads is not None and heads % kv_heads:
        raise ShapeError(f"kv_heads {kv_heads} does not divide the {heads} heads evenly")
    if rotary and features // heads % 2:
        raise ShapeError(f"rotary needs an even number of features a head, got {features // heads}")
    return heads if kv_heads is None else kv_heads


def _attention_parameters(features: int, heads: int, shared: int, bias: bool) -> int:
    width = (heads + 2 * shared) * (features // heads)
    return (width + features) * (features + (1 if bias else 0))
