"""What flows between layers, as a layer sees it before anything is built: a shape and its kind."""

from __future__ import annotations

from dataclasses import replace

from gradcli.dataclass import dataclass
from gradcli.errors import ShapeError
from gradcli.wording import quantity

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorSpec:
    """One sample between two layers: its shape without the batch.

    Attributes:
        shape: (features,), (time, features) or (channels, height, width).
        vocab: for integers below `vocab`, that bound; None for floats.
    """

    shape: Shape
    vocab: int | None = None

    def to(self, *shape: int) -> TensorSpec:
        """The same kind in another shape."""
        return replace(self, shape=shape)

    def __str__(self) -> str:
        return shape_text(self.shape)


def shape_text(shape: Shape) -> str:
    """A shape as messages and tables have it."""
    return "x".join(map(str, shape)) or "a single number"


def floats(x: TensorSpec, least: int = 1) -> TensorSpec:
    """`x`, if it is floats of at least `least` dimensions."""
    if x.vocab is not None:
        raise ShapeError(f"needs numbers, got indices below {x.vocab}; begin with an embed layer")
    if len(x.shape) < least:
        raise ShapeError(f"needs at least {quantity(least, 'dimension')} a sample, got {x}")
    return x
