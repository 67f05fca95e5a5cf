"""Ends: what becomes of the sums of a product (csrc/gpu/matmul/ends.h, then.h).

They are written, or a row of scalar_ops.h is applied to them first, with the bits of two calls.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gradcli.engine.device.gpu.launch import Arg, CallSpec, KernelModule, TensorArg, tensors
from gradcli.engine.device.kernels import FACTS, NAMES

_BEHIND = struct.Struct("2fI")


@dataclass(frozen=True)
class End:
    """The arguments of an end.

    Attributes:
        row: what is done to a sum x, as an expression that is a part of the module's text.
    """

    to: tuple[Arg, ...]
    row: str = ""

    def module(self, plain: str, suffix: str) -> KernelModule:
        """The kernels that end so, by the family of those that only write."""
        return KernelModule(_THEN[plain] if self.row else plain, suffix, self.row)


_THEN = {
    "matmul": "matmul_then",
    "matmul_tensor": "matmul_then_tensor",
    "conv2d": "conv2d_then",
    "conv2d_tensor": "conv2d_then_tensor",
    "join": "join_then",
}


def written(number: int) -> End:
    """Sums go to one of the call's tensors."""
    return End((TensorArg(number),))


def row_behind(call: CallSpec, number: int) -> End:
    """Out, tensor 5, is the row with this number of what tensor 4 has, where that is wanted."""
    kernel, keeps = NAMES[number], call.numel(4) > 0
    given = "kept[at], x, p, q" if FACTS[kernel].unary_slope else "x, p, q"
    behind = _BEHIND.pack(call.option(0), call.option(1), keeps)
    return End((*tensors(3, 4, 5), behind), f"ROW({kernel})({given})")
