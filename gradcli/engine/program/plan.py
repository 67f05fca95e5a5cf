"""Planning: every intermediate, and the scratch of every call, gets an offset in one arena.

Two of them may share bytes when the waves in which they are in use do not meet, or when an
elementwise call overwrites an input that no later call reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.dataclass import dataclass
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.device.program import CallPlan
from gradcli.engine.program import chain
from gradcli.engine.program.record import Buffer, Call, View
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
class ArenaLayout:
    """Where everything lies, as offsets in bytes from the arena's start."""

    nbytes: int
    buffers: dict[Buffer, int]
    scratch: dict[int, int]  # by the call's number


@dataclass
class _Work:
    """One call, and the waves in which it runs."""

    call: Call
    plan: CallPlan
    first: int
    last: int


def layout(calls: Sequence[Call], plans: Sequence[CallPlan], parts: Sequence[Part]) -> ArenaLayout:
    """The arena of a program: its size is the peak of what the program needs beside kept memory."""
    waves: dict[int, list[int]] = {}
    for part in parts:
        waves.setdefault(part.call, []).append(part.wave)
    works = []
    for number, (call, plan) in enumerate(zip(calls, plans, strict=True)):
        during = waves.get(number, [0])
        works.append(_Work(call, plan, during[0], during[-1]))
    buffers = _in_place(works, _lives(works))
    scratch = {
        number: _Life(work.plan.shared_bytes, work.first, work.last)
        for number, work in enumerate(works)
        if work.plan.shared_bytes
    }
    shared = {id(life): life for life in buffers.values()}
    nbytes = _assign_offsets([*shared.values(), *scratch.values()])
    return ArenaLayout(
        nbytes,
        {buffer: life.offset for buffer, life in buffers.items()},
        {number: life.offset for number, life in scratch.items()},
    )


def _lives(works: Sequence[_Work]) -> dict[Buffer, _Life]:
    """From the first wave to the last in which each intermediate is in use."""
    lives: dict[Buffer, _Life] = {}
    for work in works:
        for view in work.call.views:
            if not view.buffer.persistent:
                new = _Life(view.buffer.nbytes, work.first, work.last)
                life = lives.setdefault(view.buffer, new)
                life.first, life.last = min(life.first, work.first), max(life.last, work.last)
    return lives


def _in_place(works: Sequence[_Work], lives: dict[Buffer, _Life]) -> dict[Buffer, _Life]:
    """Let results overwrite inputs that end with the call; such buffers share a life."""
    users: dict[tuple[Buffer, int], int] = {}  # how many calls use a buffer in a wave
    for work in works:
        for buffer in {view.buffer for view in work.call.views}:
            for wave in {work.first, work.last}:
                users[buffer, wave] = users.get((buffer, wave), 0) + 1
    reused: set[Buffer] = set()
    for work in sorted(works, key=lambda work: work.first):
        at_once = work.first == work.last or FACTS[work.call.kernel].in_place
        for out in work.call.outputs if at_once else ():
            ends = [
                view.buffer
                for view in _interchangeable(work.call, out)
                if lives[view.buffer].last == work.last and users[view.buffer, work.last] == 1
            ]
            free = [buffer for buffer in ends if buffer not in reused]
            if free and users[out.buffer, work.first] == 1:
                _replace(lives, free[0], out.buffer, work.first)
                reused.add(free[0])
    return lives


def _replace(lives: dict[Buffer, _Life], ending: Buffer, beginning: Buffer, wave: int) -> None:
    """One life for both, if the second does begin with this wave."""
    if lives[beginning].first == wave:
        lives[ending].last = lives[beginning].last
        lives[beginning] = lives[ending]


def _overwritable(call: Call, out: View) -> list[View]:
    """The inputs that a kernel has read, element for element, when it writes this output."""
    if call.kernel == "chain":
        steps = chain.unpacked(call.sizes)
        output = call.views.index(out)
        return [v for i, v in enumerate(call.inputs) if chain.may_lie_over(steps, output, i)]
    over = FACTS[call.kernel].in_place if out is call.outputs[0] else ()
    return [call.inputs[i] for i in over]


def _interchangeable(call: Call, out: View) -> list[View]:
    """The inputs whose memory could be the output's: the same elements of an equal block."""
    fit = [] if out.buffer.persistent or 0 in out.shape else _overwritable(call, out)
    fit = [view for view in fit if view.layout == out.layout]
    unfit = {view.buffer for view in call.views if view not in fit}
    return [view for view in fit if view.buffer not in unfit and not view.buffer.persistent]


def _assign_offsets(lives: list[_Life]) -> int:
    """Largest first, each at the lowest offset that is free in all its waves; gives the size."""
    earlier: list[_Life] = []
    for life in sorted(lives, key=lambda life: (-life.nbytes, life.first)):
        rivals = sorted(
            (rival.offset, rival.offset + rival.nbytes)
            for rival in earlier
            if rival.first <= life.last and life.first <= rival.last
        )
        offset = 0
        for low, high in rivals:
            if low - offset >= life.nbytes:
                break
            offset = max(offset, -(-high // _ALIGN) * _ALIGN)
        life.offset = offset
        earlier.append(life)
    return max((life.offset + life.nbytes for life in earlier), default=0)
