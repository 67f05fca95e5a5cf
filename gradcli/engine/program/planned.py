"""Calls as C will take them, and where all they need will lie: known before there is memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.device import meta, scope
from gradcli.engine.device.program import CallList, CallPlan, fields
from gradcli.engine.program import plan, schedule
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.record import Buffer, Call, Recording

_PAGE = 4096
OUTSIDE = CallPlan(1, (1,), 0, 0, 1)  # of a function of Python


@dataclass(frozen=True)
class Section:
    """What C runs of a program in one go: the calls between two functions of Python.

    Attributes:
        first: the number of the first call in the program.
        calls: the calls in the order of the recording.
        listed: the same as C structs, at addresses that nothing has.
        function: what is called behind them; None behind the last section.
    """

    first: int
    calls: Sequence[Call]
    call_list: CallList
    function: Callable[[], object] | None

    def parts(self, parts: Iterable[schedule.Part]) -> list[tuple[int, int, int]]:
        """Those of the program's that are its own: call, phase and wave, counted from its first."""
        own = [part for part in parts if 0 <= part.call - self.first < len(self.calls)]
        begin = own[0].wave if own else 0
        return [(part.call - self.first, part.phase, part.wave - begin) for part in own]


class ProgramPlan:
    """The calls of a program, planned.

    Attributes:
        sections: the calls as C will take them; one, unless the step calls functions of Python.
        plans: what each kernel makes of its call.
        parts: the phases of the calls, and in which wave each runs.
        layout: where intermediates and scratch lie in the arena.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.sections = _sections(calls)
        self.plans: list[CallPlan] = []
        for section in self.sections:
            self.plans += section.call_list.plan()
            if section.function is not None:
                self.plans.append(OUTSIDE)
        self.parts = schedule.waves(calls, self.plans)
        self.layout = plan.layout(calls, self.plans, self.parts)


def _sections(calls: Sequence[Call]) -> list[Section]:
    """The calls, cut at those of functions."""
    address = _imagined(calls)
    ends = [number for number, call in enumerate(calls) if call.function is not None]
    sections = []
    for first, end in zip([0, *(end + 1 for end in ends)], [*ends, len(calls)], strict=True):
        call_list = CallList(end - first)
        for call in calls[first:end]:
            tensors = [
                fields(address[v.buffer], v.buffer.nbytes, v.offset, v.shape, v.strides, v.dtype)
                for v in call.views
            ]
            call_list.add(call.kernel, tensors, call.sizes, call.options)
        function = calls[end].function if end < len(calls) else None
        sections.append(Section(first, calls[first:end], call_list, function))
    return sections


def _imagined(calls: Sequence[Call]) -> dict[Buffer, int]:
    """Addresses that nothing else has, for planning before there is memory."""
    address: dict[Buffer, int] = {}
    free = _PAGE
    for call in calls:
        for view in call.views:
            if view.buffer not in address:
                address[view.buffer] = free
                free += -(-(view.buffer.nbytes + 1) // _PAGE) * _PAGE
    return address


@dataclass
class Rehearsal(Recording):
    """A recording of a step on the meta device, as if it were one on the CPU.

    Attributes:
        copied: bytes that a recording on the CPU copies, so that the step can be made again.
    """

    copied_bytes: int = 0

    def remember(self, buffer: Buffer) -> None:
        """Count its bytes only: nothing is undone, and meta memory holds nothing."""
        self.copied_bytes += buffer.nbytes

    def view(self, array: Any) -> Any:
        """An array as the calls see it."""
        view = super().view(array)
        view.buffer.device = None
        return view


def arena_bytes(
    step: Callable[..., object], args: Sequence[object], passes: Iterable[str] = tuple(PASSES)
) -> int:
    """The memory of intermediates that `capture` gives this step, whose tensors lie on meta.

    Nothing is computed but what Python keeps up (learning rates, random states) and what is the
    same in every step.

    Raises:
        CaptureError, DeviceError: the step looks at numbers; it would not be captured either.
    """
    rehearsal = Rehearsal()
    with scope.on(meta.DEVICE), recording.to(rehearsal):
        result = step(*args)
    rehearsal.close()  # the result is still there, so it counts as wanted
    del result
    return ProgramPlan(optimized(rehearsal.calls, passes)).layout.nbytes
