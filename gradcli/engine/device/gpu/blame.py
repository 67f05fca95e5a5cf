"""Blame: which kernels an error may come from, where a device says only that one failed."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 6  # most kernels that an error names


def one_of(names: Sequence[str]) -> str:
    """Which kernels may have failed."""
    if len(names) < 2:
        return f"kernel '{names[0]}'" if names else "a kernel"
    shown = ", ".join(f"'{name}'" for name in names[:_NAMED])
    others = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
    return f"one of the kernels {shown}{others}"
