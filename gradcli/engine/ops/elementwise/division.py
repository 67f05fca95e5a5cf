"""Division with a whole quotient: remainder, fmod, floor_divide. Whole numbers stay whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.array import Array, run
from gradcli.engine.op import declare_op
from gradcli.engine.ops.elementwise.family import (
    DIVISION_SAMPLES,
    BinaryOp,
    binary,
    map_binary,
    map_unary,
)
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, NumericsError


class WholeDivision(BinaryOp):
    """Refuses to divide whole numbers by 0, for which they have no answer."""

    def _bind(
        self, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        inputs, options = super()._bind(args, named)
        divisor = inputs[1]
        assert divisor is not None
        if divisor.dtype.kind == "bool":
            raise DTypeError(f"{self.name}: truth values cannot be divided; use x.long()")
        if divisor.dtype.kind == "int":
            try:
                run("require_nonzero", divisor.array.contiguous())
            except NumericsError:
                raise NumericsError(
                    f"{self.name}: whole numbers cannot be divided by 0; use floats"
                ) from None
        return inputs, options


def _through(grad: Array, *, input: Array, other: Array) -> Array:
    return grad


def _times_quotient(quotient: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def slope(grad: Array, *, input: Array, other: Array) -> Array:
        return map_unary("neg", map_binary("mul", grad, quotient(input, other)))

    return slope


def _floored(a: Array, b: Array) -> Array:
    return map_binary("floor_divide", a, b)


def _truncated(a: Array, b: Array) -> Array:
    return map_unary("trunc", map_binary("div", a, b))


remainder = binary(
    "remainder",
    "What is left of input when other is taken off floor(input / other) times; other's sign.",
    (_through, _times_quotient(_floored)),
    saves=("input", "other"),
    samples=DIVISION_SAMPLES,
    text="1; -floor(a / b)",
    kind=WholeDivision,
)
fmod = binary(
    "fmod",
    "What is left of input when other is taken off trunc(input / other) times; input's sign.",
    (_through, _times_quotient(_truncated)),
    saves=("input", "other"),
    samples=DIVISION_SAMPLES,
    text="1; -trunc(a / b)",
    kind=WholeDivision,
)


def _floor_divide(input: Array, other: Array) -> Array:
    """The largest whole number not above input / other."""
    return map_binary("floor_divide", input, other)


floor_divide = declare_op(
    WholeDivision(
        _floor_divide, name="floor_divide", samples=DIVISION_SAMPLES, why="torch gives it none"
    )
)
