"""Modules that are a function with options: what its class declares are the options.

    @calls(F.huber_loss)
    class HuberLoss(PairLoss):
        reduction: Reduction = "mean"
        delta: Positive = 1.0

makes `HuberLoss(reduction="mean", delta=1.0)` with two attributes, which `F.huber_loss` gets behind
its tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from gradcli.dataclass import dataclass
from gradcli.engine.argument import hints_of
from gradcli.engine.constructor import checked_constructor
from gradcli.engine.kind import members
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor

Class = TypeVar("Class", bound="FunctionModule")


class FunctionModule(Module):
    """A function with options.

    Attributes:
        function: the function, of tensors and then options.
        options: the fields that the function takes.
        tensors: the fields that are tensors, and so buffers.
    """

    function: ClassVar[Callable[..., Tensor]]
    options: ClassVar[tuple[str, ...]] = ()
    tensors: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *args: object, **keywords: object) -> Self:
        """A module whose tables are there before its fields are set."""
        module = super().__new__(cls)
        Module.__init__(module)
        return module

    def __post_init__(self) -> None:
        for name in self.tensors:
            tensor = getattr(self, name)
            delattr(self, name)  # of a Parameter the assignment has made a parameter
            self.register_buffer(name, tensor)

    def call(self, *inputs: Any) -> Tensor:
        """What the function makes of these tensors."""
        return self.function(*inputs, **{name: getattr(self, name) for name in self.options})


@dataclass_transform(eq_default=False)
def calls(function: Callable[..., Tensor]) -> Callable[[type[Class]], type[Class]]:
    """Declare a module of a function: a constructor with a parameter for each field of the class.

    Fields of bases come first, as in a dataclass; those behind `_: KW_ONLY` are given by name.
    """

    def declare(kind: type[Class]) -> type[Class]:
        fields = hints_of(dataclass(kind, eq=False, repr=False).__init__)
        kind.tensors = tuple(name for name, hint in fields.items() if Tensor in members(hint))
        kind.options = tuple(name for name in signature(function).parameters if name in fields)
        kind.function = staticmethod(function)
        for name in vars(kind).keys() & fields.keys():  # a default would hide a buffer or module
            delattr(kind, name)
        return checked_constructor(kind)

    return declare
