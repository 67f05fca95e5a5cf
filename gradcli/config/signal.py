"""What flows between layers, as a layer sees it before anything is built: a shape and its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signal:
    """One sample between two layers: its shape without the batch.

    Attributes:
        shape: (features,), (time, features) or (channels, height, width).
        vocab: for integers below `vocab`, that bound; None for floats.
    """

    shape: Shape
    vocab: int | None = None

    def to(self, *shape: int) -> Signal:
        """The same kind in another shape."""
        return replace(self, shape=shape)

    def __str__(self) -> str:
        return "x".join(map(str, self.shape)) or "a single number"


class Fitted(NamedTuple):
    """A layer that knows its input: what leaves it, its parameters, and how to make it."""

    output: Signal
    parameters: int
    make: Callable[[], nn.Module]


def floats(x: Signal, least: int = 1) -> Signal:
    """`x`, if it is floats of at least `least` dimensions."""
    if x.vocab is not None:
        raise ShapeError(f"needs numbers, got indices below {x.vocab}; begin with an embed layer")
    if len(x.shape) < least:
        raise ShapeError(f"needs at least {least} dimensions a sample, got {x}")
    return x


def image(x: Signal) -> tuple[int, int, int]:
    """Channels, height and width of an image."""
    floats(x)
    if len(x.shape) != 3:
        raise ShapeError(f"needs images (channels x height x width), got {x}")
    channels, height, width = x.shape
    return channels, height, width


def line(x: Signal) -> tuple[int, int]:
    """Channels and length of a line."""
    if len(floats(x).shape) != 2:
        raise ShapeError(f"needs lines (channels x length), got {x}")
    channels, length = x.shape
    return channels, length


def given_input(given: int | None, found: int) -> None:
    """An input size that was written although it is inferred must be the right one."""
    if given is not None and given != found:
        raise ShapeError(
            f"'in' says {given}, the input has {found}; leave 'in' out, it is inferred"
        )
