"""Parameter: a tensor that a module owns and an optimizer changes."""

from __future__ import annotations

__all__ = ["Parameter"]

from gradcli.engine.constructor import checked_constructor
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.tensor import Tensor


@checked_constructor
class Parameter(Tensor):
    """A leaf tensor that asks for a gradient; shares the memory of `data`.

    Assigned to an attribute of a Module, it is found by `parameters()` and `state_dict()`.
    """

    __slots__ = ()

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        source = empty(0) if data is None else data
        super().__init__(source.array, requires_grad=requires_grad, alias=data is not None)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
