"""Whether fused ops run as they are, or as the same thing written with simpler ops."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from gradcli.engine.argument import checked_as
from gradcli.engine.block import Block

_composing: ContextVar[bool] = ContextVar("composing", default=False)

# True where fused ops run as the same thing written with simpler ops.
composing: Callable[[], bool] = _composing.get


class composed(Block):  # noqa: N801 -- reads like no_grad
    """Fused ops run as the same thing written with simpler ops, inside a `with` block.

    Values and gradients are the same up to rounding, and can be differentiated twice.
    """

    variable = _composing

    @checked_as("composed")
    def __init__(self, mode: bool = True) -> None:
        super().__init__(mode)
