"""Powers and roots."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.ops.elementwise.arithmetic import mul
from gradcli.engine.ops.elementwise.family import (
    POSITIVE_SAMPLES,
    BinaryOp,
    binary,
    map_binary,
    unary,
)
from gradcli.engine.sample import positive, sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

sqrt = unary("sqrt", "Square root of x.", samples=POSITIVE_SAMPLES)
rsqrt = unary("rsqrt", "1 over the square root of x.", samples=POSITIVE_SAMPLES)


def _whole_power(input: Array, other: Array) -> Array:
    return map_binary("pow_whole", input, other)


_pow_whole = BinaryOp(_whole_power, name="pow", why="whole numbers have no slope")


class PowerOp(BinaryOp):
    """pow, with whole numbers to whole powers kept whole, as torch does."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Floats as ever; whole numbers by a kernel of their own."""
        exponent = args[1] if len(args) > 1 else keywords.get("other")
        (a, b), _ = self._bind(args, keywords)
        assert a is not None and b is not None
        if a.dtype.is_floating_point:
            return self.ran([a, b], {})
        if a.dtype.kind == "bool" or (isinstance(exponent, int) and exponent < 0):
            raise OptionError("pow: whole numbers to negative powers are not whole; use floats")
        return _pow_whole(a, b)


pow = binary(
    "pow",
    "input to the power other.",
    samples=(
        sample(positive((3, 5)), (3, 5)),
        sample(positive((3, 1)), (1, 4)),
        sample(positive((2, 3, 4)), (4,)),
        sample(positive((0, 3)), (1, 3)),
    ),
    kind=PowerOp,
)


@function(samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))])
def square(input: Tensor) -> Tensor:
    """The element times itself; of truths 0 or 1, as int64."""
    x = input.long() if input.dtype is dtypes.bool_ else input
    return mul(x, x)
