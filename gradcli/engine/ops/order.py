"""Ops that take their first option as torch does: second, before the other inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from inspect import Signature
from typing import Any

from gradcli.engine.op import Op
from gradcli.engine.tensor import Tensor

_TENSORS = {Tensor}


class OptionSecond(Op[Tensor]):
    """gather(input, dim, index) beside gather(input, index, dim), in which inputs come first."""

    @property
    def __signature__(self) -> Signature:
        """In torch's order."""
        usual = super().__signature__.parameters
        order = dict.fromkeys((self.inputs[0], next(iter(self.options)), *usual))
        return Signature([usual[name] for name in order], __validate_parameters__=False)

    @cached_property
    def _lone(self) -> str:
        """The option in question, if a call needs no other one."""
        return self._required[0] if len(self._required) == 1 else ""

    def _bind(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if (
            not keywords
            and len(args) == len(self.inputs) + 1
            and type(args[1]) is int
            and self._lone
        ):
            inputs = [args[0], *args[2:]]  # as in most calls
            if _TENSORS.issuperset(map(type, inputs)):
                return inputs, {self._lone: args[1]}
        # What stands second tells which order a call uses.
        option, behind = next(iter(self.options)), len(self.inputs) + 1
        second = args[1] if len(args) > 1 else None
        if second is not None and not isinstance(second, Tensor) and option not in keywords:
            if len(args) < behind:
                args, keywords = (args[0], *args[2:]), {**keywords, option: second}
            else:
                args = (args[0], *args[2:behind], second, *args[behind:])
        return super()._bind(args, keywords)
