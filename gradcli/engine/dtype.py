"""Element types: name, size, code in the kernels, and torch's rules for mixing them."""

from __future__ import annotations

from dataclasses import field
from math import isfinite

from gradcli.dataclass import dataclass
from gradcli.errors import DTypeError, OptionError


@dataclass(frozen=True, eq=False)
class DType:
    """One element type. `kind` orders them: bool < int < float.

    Attributes:
        is_floating_point: True for float32, float64 and bfloat16.
    """

    name: str
    code: int  # as in csrc/call.h
    size: int  # bytes
    kind: str
    format: str  # as in the struct module and the buffer protocol; "" where they have none
    is_floating_point: bool = field(init=False)  # read several times in each call

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_floating_point", self.kind == "float")

    def __repr__(self) -> str:
        return f"gradcli.{self.name}"

    def whole(self, value: float) -> int:
        """A number as one of this type of whole numbers or truths, rounded towards 0.

        Negative numbers of a byte count from 256 down, as in C and torch.
        """
        if self.kind == "bool":
            return int(bool(value))
        top = (1 << 8) if self.name == "uint8" else 1 << (8 * self.size - 1)
        number = int(value) if isfinite(value) else top
        if not -top <= number < top:
            raise OptionError(f"the number {value} does not fit into {self}")
        return number % top if self.name == "uint8" else number

    @property
    def computed(self) -> DType:
        """The type in which kernels compute: float32 for bfloat16, otherwise the type itself."""
        return float32 if self is bfloat16 else self


float32 = DType("float32", 0, 4, "float", "f")
float64 = DType("float64", 1, 8, "float", "d")
int32 = DType("int32", 2, 4, "int", "i")
int64 = DType("int64", 3, 8, "int", "q")
uint8 = DType("uint8", 4, 1, "int", "B")
bool_ = DType("bool", 5, 1, "bool", "?")

bfloat16 = DType("bfloat16", 6, 2, "float", "")

LARGEST = {  # finite number
    float32: 3.4028234663852886e38,
    float64: 1.7976931348623157e308,
    bfloat16: 3.3895313892515355e38,
}
DTYPES = {d.name: d for d in (float32, float64, int32, int64, uint8, bool_, bfloat16)}
_RANK = {"bool": 0, "int": 1, "float": 2}


def check_dtype(dtype: object) -> DType:
    """The element type itself; anything else, such as its name, is refused."""
    if not isinstance(dtype, DType):
        raise DTypeError(f"dtype must be an element type such as engine.float32, got {dtype!r}")
    return dtype


def of_scalar(value: float) -> DType:
    """The type that a Python number becomes by itself: bool, int64 or float32."""
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else float32


def promote(a: DType, b: DType) -> DType:
    """The type that holds both: the higher kind, then the larger; uint8 with int32 is int32."""
    if a is b:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        return a if _RANK[a.kind] > _RANK[b.kind] else b
    return a if a.size >= b.size else b


def beside(a: DType, b: DType) -> DType:
    """The type of what two that fit give: a number beside bfloat16 is float32, not rounded."""
    return b if b is bfloat16 else a


def promote_weak(strong: DType, weak: DType) -> DType:
    """Python numbers and 0-dimensional tensors only win when their kind is higher."""
    return strong if _RANK[strong.kind] >= _RANK[weak.kind] else weak
