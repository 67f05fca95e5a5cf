"""Ends: what becomes of the sums of a product (csrc/gpu/matmul/ends.h, then.h).

They are written, or a row of scalar_ops.h is applied to them first, with the bits of two calls.
"""

from __future__ import annotations

import struct

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.launch import Arg, CallSpec, tensors
from gradcli.engine.device.kernels import FACTS, NAMES

_BEHIND = struct.Struct("2fI")


@dataclass(frozen=True)
class End:
    """The arguments of an end.

    Attributes:
        row: what is done to a sum x, as an expression that is a part of the module's text.
    """

    out: int  # the tensor of the call that gets the results
    to: tuple[Arg, ...]
    row: str = ""

    def family(self, plain: str) -> str:
        """The kernels that end so, by the family of those that only write."""
        return f"{plain}_then" if self.row else plain


def store(number: int) -> End:
    """Sums go to one of the call's tensors."""
    return End(number, tensors(number))


def row_behind(call: CallSpec, number: int) -> End:
    """Tensor 5 gets the row with this number of each sum; tensor 4, if there, the sum itself."""
    kernel = NAMES[number]
    operands = "kept[at], x, p, q" if FACTS[kernel].unary_slope else "x, p, q"
    behind = _BEHIND.pack(call.option(0), call.option(1), call.has(4))
    return End(5, (*tensors(3, 4, 5), behind), f"ROW({kernel})({operands})")
