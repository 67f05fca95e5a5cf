"""How precise products of float32 must be: torch's float32_matmul_precision.

"high" marks calls of products and convolutions as such that may round what they multiply to TF32
(8 bits of exponent, 10 of mantissa). Only tensor cores of GPUs do so: the CPU and Metal compute in
float32 in any case.
"""

from __future__ import annotations

from gradcli.engine.dtype import DType, float32
from gradcli.errors import OptionError

MAY_ROUND = 1.0  # the last option of a marked call
_CHOICES = ("highest", "high")
_precision = ["highest"]  # one for the whole process, as in torch


def set_float32_matmul_precision(precision: str) -> None:
    """How products of float32 are computed: "highest" in float32, "high" may round to TF32."""
    if precision == "medium":
        raise OptionError(
            'set_float32_matmul_precision: "medium" is not known here; '
            'multiply in bfloat16 under engine.autocast(), or use "high"'
        )
    if not isinstance(precision, str) or precision not in _CHOICES:
        raise OptionError(
            'set_float32_matmul_precision: precision must be "highest" or "high", '
            f"got {precision!r:.60}"
        )
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """What was set last; "highest" at first."""
    return _precision[0]


def product_options(dtype: DType) -> tuple[float, ...]:
    """The options of a call that multiplies numbers of this type."""
    return (MAY_ROUND,) if dtype is float32 and _precision[0] == "high" else ()
