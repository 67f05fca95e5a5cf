"""Planning: every intermediate, and the scratch of every call, gets a place in one arena.

Two of them may share bytes when the waves in which they are in use do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradcli.engine.device.program import CallPlan
from gradcli.engine.program.record import Buffer, Call
from gradcli.engine.program.schedule import Part

_ALIGN = 64


@dataclass
class _Life:
    """A wish for memory: how much, and from which wave to which."""

    nbytes: int
    first: int
    last: int
    offset: int = -1


@dataclass(frozen=True)
class Layout:
    """Where everything lies, as offsets in bytes from the arena's start."""

    nbytes: int
    buffers: dict[Buffer, int]
    scratch: dict[int, int]  # by the call's number


def layout(calls: Sequence[Call], plans: Sequence[CallPlan], parts: Sequence[Part]) -> Layout:
    """The arena of a program: its size is the peak of what the program needs beside kept memory."""
    waves: dict[int, list[int]] = {}
    for part in parts:
        waves.setdefault(part.call, []).append(part.wave)
    buffers: dict[Buffer, _Life] = {}
    scratch: dict[int, _Life] = {}
    for number, (call, plan) in enumerate(zip(calls, plans, strict=True)):
        first, last = waves.get(number, [0])[0], waves.get(number, [0])[-1]
        for view in call.views:
            if view.buffer.kept:
                continue
            life = buffers.setdefault(view.buffer, _Life(view.buffer.nbytes, first, last))
            life.first, life.last = min(life.first, first), max(life.last, last)
        if plan.shared_bytes:
            scratch[number] = _Life(plan.shared_bytes, first, last)
    nbytes = _place([*buffers.values(), *scratch.values()])
    return Layout(
        nbytes,
        {buffer: life.offset for buffer, life in buffers.items()},
        {number: life.offset for number, life in scratch.items()},
    )


def _place(lives: list[_Life]) -> int:
    """Largest first, each at the lowest offset that is free in all its waves; gives the size."""
    placed: list[_Life] = []
    for life in sorted(lives, key=lambda one: (-one.nbytes, one.first)):
        rivals = sorted(
            (one.offset, one.offset + one.nbytes)
            for one in placed
            if one.first <= life.last and life.first <= one.last
        )
        offset = 0
        for low, high in rivals:
            if low - offset >= life.nbytes:
                break
            offset = max(offset, -(-high // _ALIGN) * _ALIGN)
        life.offset = offset
        placed.append(life)
    return max((life.offset + life.nbytes for life in placed), default=0)
