"""Sizes that may be given once for both directions."""

from __future__ import annotations

from typing import Any

from gradcli.errors import OptionError

Pair = int | tuple[int, int]


def pair(value: Any, name: str, least: int) -> tuple[int, int]:
    """(height, width) from one number or two, each at least `least`."""
    both = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or any(isinstance(v, bool) or not isinstance(v, int) for v in both):
        raise OptionError(f"{name} must be a whole number or a pair of them, got {value!r}")
    if min(both) < least:
        raise OptionError(f"{name} must be {least} or more, got {value!r}")
    return both[0], both[1]
