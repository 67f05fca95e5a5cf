"""Layers on whole samples and on single values.

One function a name in YAML: its parameters after the input are the keys, their types the schema.
It says what leaves the layer and how many parameters it has; only the thunk it returns builds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.config.fields import Shape
from gradcli.config.signal import Fitted, Signal, floats, given_input
from gradcli.engine.kind import Count, Positive, Share
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


def flatten(x: Signal) -> Fitted:
    """All values of a sample in one row."""

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Flatten()

    return Fitted(x.to(math.prod(x.shape)), 0, make)


def reshape(x: Signal, shape: Shape) -> Fitted:
    """The values of a sample in another shape, in the same order."""
    if math.prod(floats(x).shape) != math.prod(shape):
        raise ShapeError(
            f"the input {x} has {math.prod(x.shape)} values, "
            f"{'x'.join(map(str, shape))} has {math.prod(shape)}"
        )

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Sequential(nn.Flatten(), nn.Unflatten(1, shape))

    return Fitted(x.to(*shape), 0, make)


def linear(
    x: Signal, out: Count, *, bias: bool = True, in_: Count | None = None, tied: str | None = None
) -> Fitted:
    """The last dimension becomes x @ weight.T + bias; the weight may be an embed layer's."""
    del tied  # config/ties.py knows the layers above
    *rest, features = floats(x, least=1).shape
    given_input(in_, features)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Linear(features, out, bias=bias)

    return Fitted(x.to(*rest, out), features * out + (out if bias else 0), make)


def embed(x: Signal, dim: Count, *, std: Positive = 1.0) -> Fitted:
    """A learnt row of `dim` numbers for each index, normally distributed at first."""
    if x.vocab is None:
        raise ShapeError(f"needs indices, such as those of text; the input is numbers ({x})")
    vocab = x.vocab

    def make() -> nn.Module:
        from gradcli.engine import nn

        made = nn.Embedding(vocab, dim)
        if std != 1.0:
            nn.init.normal_(made.weight, 0.0, std)
        return made

    return Fitted(Signal((*x.shape, dim)), vocab * dim, make)


def layernorm(x: Signal, *, eps: Positive = 1e-5) -> Fitted:
    """Mean 0, variance 1 over the last dimension (of images: all three); then scale and shift."""
    shape = floats(x).shape
    over = shape if len(shape) == 3 else shape[-1:]

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.LayerNorm(over, eps=eps)

    return Fitted(x, 2 * math.prod(over), make)


def dropout(x: Signal, p: Share = 0.5) -> Fitted:
    """Zero each value with probability `p` while training; scale the rest by 1 / (1 - p)."""

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Dropout(p)

    return Fitted(floats(x), 0, make)
