"""Numbers as they are written: whether float64, in which everything is read, holds one."""

from __future__ import annotations

SMALLEST = "4.9e-324"


def becomes_zero(text: str, value: float) -> bool:
    """Whether a written number is read as 0 and is not: none is closer to it."""
    digits = text.lower().partition("e")[0]
    return value == 0 and any(digit in digits for digit in "123456789")
