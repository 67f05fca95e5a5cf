"""How a tensor looks when printed."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.op import function
from gradcli.engine.tensor import Tensor

EDGE = 3  # elements shown at either end of a long dimension
LONG = 1000  # elements from which on the middle is left out


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.4g}"
    return text if any(c in text for c in ".en") else f"{text}."  # 3. is a float, as in torch


def _rows(input: Tensor, indent: int, shorten: bool) -> str:
    if input.ndim == 0:
        return _number(input.item())
    size = input.shape[0]
    picked: list[int | None] = list(range(size))
    if shorten and size > 2 * EDGE:
        picked = [*range(EDGE), None, *range(size - EDGE, size)]
    parts = ["..." if i is None else _rows(input[i], indent + 1, shorten) for i in picked]
    gap = ", " if input.ndim == 1 else ",\n" + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


@function("format", method=False)
def text(input: Tensor) -> str:
    """tensor(...) with its numbers, its type where unusual, and whether it has a history."""
    parts = [_rows(input.detach(), len("tensor("), input.numel() > LONG)]
    if input.dtype not in (dtypes.float32, dtypes.int64, dtypes.bool_):
        parts.append(f"dtype={input.dtype}")
    if 0 in input.shape:
        parts.append(f"size={input.shape}")
    if input.node is not None:
        parts.append(f"grad_fn=<{input.node.name}>")
    elif input.requires_grad:
        parts.append("requires_grad=True")
    return f"tensor({', '.join(parts)})"
