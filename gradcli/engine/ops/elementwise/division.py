"""Division with a whole quotient: remainder, fmod, floor_divide, and div with a rounding mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from gradcli.engine.array import Array, run, scalar, unbroadcast
from gradcli.engine.double_backward import sum_to
from gradcli.engine.op import declare_op
from gradcli.engine.ops.elementwise.family import (
    DIVISION_SAMPLES,
    BinaryOp,
    binary,
    map_binary,
    map_unary,
)
from gradcli.engine.sample import index, positive, sample, unit, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, NumericsError


class WholeDivision(BinaryOp):
    """Refuses to divide whole numbers by 0, for which they have no answer."""

    def _bind(
        self, args: Sequence[object], keywords: dict[str, object]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        inputs, options = super()._bind(args, keywords)
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


# -- div with a rounding mode ----------------------------------------------------------------------


def _towards_0(input: Array, other: Array) -> Array:
    """The whole number next to input / other towards 0."""
    if input.dtype.is_floating_point:
        return _truncated(input, other)
    whole = map_binary("sub", input, map_binary("fmod", input, other))
    return map_binary("floor_divide", whole, other)


def _flat(forward: Callable[[Array, Array], Array]) -> WholeDivision:
    """An op whose gradient is 0: it is constant almost everywhere."""
    division = WholeDivision(forward, name="div")

    @division.gradient
    def gradient(grad: Array, *, shapes: tuple[Shape, ...]) -> tuple[Array, ...]:
        nothing = map_binary("mul", grad, scalar(0, grad.dtype))
        return tuple(unbroadcast(nothing, shape) for shape in shapes)

    @division.double_backward
    def double_backward(grad: Tensor, *, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        return tuple(sum_to(grad * 0.0, shape) for shape in shapes)

    return division


_ROUNDED = {"trunc": _flat(_towards_0), "floor": _flat(_floor_divide)}


class DivOp(BinaryOp):
    """div, which gives whole quotients where a rounding mode is named."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The quotient."""
        mode = keywords.pop("rounding_mode", None) if keywords else None
        if mode is None:
            return super().__call__(*args, **keywords)
        mode = self.kinds["rounding_mode"].convert_argument(self.name, "rounding_mode", mode)
        return _ROUNDED[mode](*args, **keywords)


def quotient(
    input: Array, other: Array, *, rounding_mode: Literal["trunc", "floor"] | None = None
) -> Array:
    """The elements of input / other."""
    del rounding_mode  # DivOp has applied it
    return map_binary("div", input, other)


_UNITS = index((2, 3), 9, -8), index((3,), 5, 1)
ROUNDED_SAMPLES = (
    sample(unit((3, 5)), unit((3, 1)), rounding_mode="trunc"),
    sample(unit((4,)), unit((2, 4)), rounding_mode="floor"),
    sample(*_UNITS, rounding_mode="trunc"),
    sample(*_UNITS, rounding_mode="floor"),
    sample((0, 3), positive((3,)), rounding_mode="trunc"),
)
ROUNDED_WRONG = (
    wrong(
        sample(index((2,), 3), index((2,), 1), rounding_mode="floor"),
        "div: whole numbers cannot be divided by 0",
    ),
)
