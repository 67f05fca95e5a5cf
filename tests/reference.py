"""References: every op again in plain Python float64, obviously right and slow. No NumPy needed.

`REFERENCES[name](*inputs, **options)` takes and gives Grids; None for an input left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from grid import Grid, elementwise, pairwise, pick
from reference_activation import REFERENCES as ACTIVATIONS
from reference_attention import REFERENCES as ATTENTION
from reference_gather import REFERENCES as GATHERED
from reference_index import REFERENCES as INDEXING
from reference_linalg import REFERENCES as LINALG
from reference_losses import LOSSES
from reference_rearrange import REFERENCES as REARRANGED
from reference_recurrent import REFERENCES as RECURRENT
from reference_reduce import REFERENCES as REDUCTIONS
from reference_window import REFERENCES as WINDOWS


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _gelu(x: float, approximate: str = "none") -> float:
    if approximate == "tanh":
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def _quotient(a: float, b: float, rounding_mode: str = "") -> float:
    rounded = {"floor": math.floor, "trunc": math.trunc}.get(rounding_mode)
    return rounded(a / b) if rounded else a / b


def _clamp(x: float, min: float | None = None, max: float | None = None) -> float:
    x = x if min is None or x >= min else min
    return x if max is None or x <= max else max


def _reshape(x: Grid, shape: Sequence[int]) -> Grid:
    known = math.prod(size for size in shape if size != -1)
    return Grid([len(x.flat) // known if size == -1 else size for size in shape], x.flat)


def _permute(x: Grid, dims: Sequence[int]) -> Grid:
    dims = [d % x.ndim for d in dims]
    shape = [x.shape[d] for d in dims]
    return Grid.from_function(shape, lambda at: x[tuple(at[dims.index(d)] for d in range(x.ndim))])


def _expand(x: Grid, size: Sequence[int]) -> Grid:
    extra = len(size) - x.ndim
    shape = [x.shape[d - extra] if s == -1 else s for d, s in enumerate(size)]
    return Grid.from_function(shape, lambda at: pick(x, at))


def _nested(shape: tuple[int, ...], start: int) -> Any:
    """Nested lists of element numbers, for Python itself to index."""
    if not shape:
        return start
    step = math.prod(shape[1:])
    return [_nested(shape[1:], start + i * step) for i in range(shape[0])]


def _getitem(x: Grid, index: Any) -> Grid:
    parts = list(index) if isinstance(index, tuple) else [index]
    used = sum(p is not None and p is not Ellipsis for p in parts)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[at : at + 1] = [slice(None)] * (x.ndim - used)

    def walk(value: Any, rest: list[Any], dims: tuple[int, ...]) -> tuple[list[int], list[int]]:
        if not rest:
            return [], [value]
        if rest[0] is None:
            shape, flat = walk(value, rest[1:], dims)
            return [1, *shape], flat
        if isinstance(rest[0], slice):
            picked = range(dims[0])[rest[0]]
            inner = [walk(value[i], rest[1:], dims[1:]) for i in picked]
            empty_shape, _ = walk(_nested(dims[1:], 0), rest[1:], dims[1:])
            return [len(picked), *(inner[0][0] if inner else empty_shape)], [
                v for _, flat in inner for v in flat
            ]
        return walk(value[rest[0]], rest[1:], dims[1:])

    shape, flat = walk(_nested(x.shape, 0), parts, x.shape)
    return Grid(shape, [x.flat[i] for i in flat])


def _with_part(x: Grid, value: Grid, index: Any) -> Grid:
    places = _getitem(Grid(x.shape, range(len(x.flat))), index)
    new = dict(zip(places.flat, value.flat, strict=True))
    return Grid(x.shape, [new.get(i, v) for i, v in enumerate(x.flat)])


REFERENCES: dict[str, Callable[..., Any]] = {
    **ACTIVATIONS,
    "log1p": elementwise(math.log1p),
    "log2": elementwise(math.log2),
    "log10": elementwise(math.log10),
    "expm1": elementwise(math.expm1),
    "exp2": elementwise(lambda x: 2**x),
    "reciprocal": elementwise(lambda x: 1 / x),
    "tan": elementwise(math.tan),
    "asin": elementwise(math.asin),
    "acos": elementwise(math.acos),
    "atan": elementwise(math.atan),
    "sinh": elementwise(math.sinh),
    "cosh": elementwise(math.cosh),
    "erf": elementwise(math.erf),
    "erfc": elementwise(math.erfc),
    "round": elementwise(lambda x, decimals=0: round(x, decimals)),
    "frac": elementwise(lambda x: x - math.trunc(x)),
    "atan2": pairwise(math.atan2),
    "hypot": pairwise(math.hypot),
    "remainder": pairwise(lambda a, b: a % b),
    "fmod": pairwise(math.fmod),
    "floor_divide": pairwise(lambda a, b: a // b),
    "logical_and": pairwise(lambda a, b: bool(a) and bool(b)),
    "logical_or": pairwise(lambda a, b: bool(a) or bool(b)),
    "logical_xor": pairwise(lambda a, b: bool(a) != bool(b)),
    "bitwise_and": pairwise(lambda a, b: a & b),
    "bitwise_or": pairwise(lambda a, b: a | b),
    "bitwise_xor": pairwise(lambda a, b: a ^ b),
    "trunc": elementwise(math.trunc),
    "exp": elementwise(_exp),
    "log": elementwise(math.log),
    "sqrt": elementwise(math.sqrt),
    "rsqrt": elementwise(lambda x: 1 / math.sqrt(x)),
    "sin": elementwise(math.sin),
    "cos": elementwise(math.cos),
    "tanh": elementwise(math.tanh),
    "sigmoid": elementwise(_sigmoid),
    "relu": elementwise(lambda x: x if x > 0 else 0.0),
    "leaky_relu": elementwise(lambda x, negative_slope=0.01: x if x > 0 else negative_slope * x),
    "gelu": elementwise(_gelu),
    "clamp": elementwise(_clamp),
    "floor": elementwise(math.floor),
    "ceil": elementwise(math.ceil),
    "sign": elementwise(lambda x: math.copysign(1, x) if x else 0.0),
    "neg": elementwise(lambda x: -x),
    "abs": elementwise(abs),
    "clone": elementwise(lambda x: x),
    "cast": elementwise(lambda x, dtype: x),
    "transfer": elementwise(lambda x, device: x),
    "add": pairwise(lambda a, b, alpha=1: a + alpha * b),
    "sub": pairwise(lambda a, b, alpha=1: a - alpha * b),
    "mul": pairwise(lambda a, b: a * b),
    "div": pairwise(_quotient),
    "lerp_number": pairwise(lambda a, b, weight: (1 - weight) * a + weight * b),
    "pow": pairwise(lambda a, b: a**b),
    "maximum": pairwise(max),
    "minimum": pairwise(min),
    "eq": pairwise(lambda a, b: a == b),
    "ne": pairwise(lambda a, b: a != b),
    "lt": pairwise(lambda a, b: a < b),
    "le": pairwise(lambda a, b: a <= b),
    "gt": pairwise(lambda a, b: a > b),
    "ge": pairwise(lambda a, b: a >= b),
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "getitem": _getitem,
    "with_part": _with_part,
    **GATHERED,
    **INDEXING,
    **REARRANGED,
    **REDUCTIONS,
    **LINALG,
    **LOSSES,
    **ATTENTION,
    **RECURRENT,
    **WINDOWS,
}
