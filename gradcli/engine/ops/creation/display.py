"""How a tensor looks when printed: torch's rules for digits, widths and line breaks."""

from __future__ import annotations

import math
from typing import Any

from gradcli.devices import META
from gradcli.engine import dtype as dtypes
from gradcli.engine.composite import function
from gradcli.engine.tensor import Tensor

EDGE = 3  # elements shown at either end of a long dimension
LONG = 1000  # elements from which on the middle is left out
LINE = 80  # columns
LEFT_OUT = " ..."


class _Format:
    """One way of writing for all numbers of a tensor, so that they stand below each other."""

    def __init__(self, numbers: list[Any], floats: bool) -> None:
        self.floats = floats
        visible = numbers
        if floats:
            visible = [v for v in numbers if v != 0 and math.isfinite(v)]
            sizes = [abs(v) for v in visible] or [1.0]
            whole = all(v == math.ceil(v) for v in visible)
            wide = max(sizes) / min(sizes) > 1000 or max(sizes) > 1e8
            self.pattern = ".0f" if whole else ".4f"
            if wide or (not whole and min(sizes) < 1e-4):
                self.pattern = ".4e"
        self.width = max((len(self._plain(v)) for v in visible), default=1)

    def _plain(self, value: Any) -> str:
        if not self.floats:
            return str(value)
        point = "." if self.pattern == ".0f" and math.isfinite(value) else ""
        return f"{value:{self.pattern}}{point}"

    def __call__(self, value: Any) -> str:
        return self._plain(value).rjust(self.width)


def _corners(data: list[Any], ndim: int) -> list[Any]:
    """The numbers that stay when the middle of long dimensions is left out."""
    ends = data if len(data) <= 2 * EDGE else data[:EDGE] + data[-EDGE:]
    if ndim == 1:
        return ends
    return [number for row in ends for number in _corners(row, ndim - 1)]


def _row(data: list[object], write: _Format, indent: int, short: bool) -> str:
    words = [write(value) for value in data]
    if short and len(data) > 2 * EDGE:
        words = [*words[:EDGE], LEFT_OUT, *words[-EDGE:]]
    a_line = max(1, (LINE - indent) // (write.width + 2))
    lines = [", ".join(words[i : i + a_line]) for i in range(0, len(words), a_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _rows(data: list[Any], ndim: int, write: _Format, indent: int, short: bool) -> str:
    if ndim == 1:
        return _row(data, write, indent, short)
    left_out = short and len(data) > 2 * EDGE
    ends = [*data[:EDGE], *data[-EDGE:]] if left_out else data
    parts = [_rows(row, ndim - 1, write, indent + 1, short) for row in ends]
    if left_out:
        parts.insert(EDGE, "...")
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _numbers(input: Tensor, indent: int) -> str:
    if input.device == META:
        return "..."
    data = input.tolist()
    floats = input.is_floating_point()
    if input.ndim == 0:
        return _Format([data], floats)(data)
    if input.numel() == 0:
        return "[]"
    short = input.numel() > LONG
    numbers = _corners(data, input.ndim) if short else input.reshape(-1).tolist()
    return _rows(data, input.ndim, _Format(numbers, floats), indent, short)


def _remarks(input: Tensor) -> list[str]:
    """What the numbers do not tell: an odd type, an empty shape, a history."""
    remarks = []
    usual = (
        (dtypes.float32,) if input.numel() == 0 else (dtypes.float32, dtypes.int64, dtypes.bool_)
    )
    if input.device == META:
        remarks.append(f"device='{META}'")
    if input.device == META or (input.numel() == 0 and input.ndim != 1):
        remarks.append(f"size={input.shape}")
    if input.dtype not in usual:
        remarks.append(f"dtype={input.dtype}")
    if input.node is not None:
        remarks.append(f"grad_fn=<{input.node.name}>")
    elif input.requires_grad:
        remarks.append("requires_grad=True")
    return remarks


@function("format", method=False)
def text(input: Tensor) -> str:
    """tensor(...) with its numbers, its type where unusual, and whether it has a history."""
    output = "tensor(" + _numbers(input, len("tensor("))
    length = len(output) - output.rfind("\n")
    for remark in _remarks(input):
        if length + len(remark) + 2 > LINE:
            output, length = f"{output},\n       {remark}", len("       ") + len(remark)
        else:
            output, length = f"{output}, {remark}", length + len(remark) + 2
    return output + ")"
