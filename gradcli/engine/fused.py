"""Whether fused ops run as one kernel, or decomposed into simpler ops."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from gradcli.engine.argument import checked_as
from gradcli.engine.block import Block

_decomposing: ContextVar[bool] = ContextVar("decomposing", default=False)

# Whether fused ops run decomposed.
decomposing: Callable[[], bool] = _decomposing.get


class decomposed(Block):  # noqa: N801 -- reads like no_grad
    """Run fused ops decomposed into simpler ops inside a `with` block.

    Values and gradients are the same up to rounding, and can be differentiated twice.
    """

    variable = _decomposing

    @checked_as("decomposed")
    def __init__(self, mode: bool = True) -> None:
        super().__init__(mode)
