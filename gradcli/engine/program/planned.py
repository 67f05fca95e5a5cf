"""Calls as C will take them, and where all they need will lie: known before there is memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.engine import recording
from gradcli.engine.device import meta, place
from gradcli.engine.device.program import CallList, CallPlan, fields
from gradcli.engine.program import plan, schedule
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.record import Buffer, Call, Recording

_PAGE = 4096


class Planned:
    """The calls of a program, planned.

    Attributes:
        listed: the calls as C structs, at addresses that nothing has.
        plans: what each kernel makes of its call.
        parts: the phases of the calls, and in which wave each runs.
        layout: where intermediates and scratch lie in the arena.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.listed = CallList(len(calls))
        address = _imagined(calls)
        for call in calls:
            tensors = [
                fields(address[v.buffer], v.buffer.nbytes, v.offset, v.shape, v.strides, v.dtype)
                for v in call.views
            ]
            self.listed.add(call.kernel, tensors, call.sizes, call.options)
        self.plans: list[CallPlan] = self.listed.plan()
        self.parts = schedule.waves(calls, self.plans)
        self.layout = plan.layout(calls, self.plans, self.parts)


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


class _Rehearsal(Recording):
    """A recording of a step on the meta device, as if it were one on the CPU."""

    def remember(self, buffer: Buffer) -> None:
        """Nothing: the step is not undone, and meta memory holds nothing."""

    def view(self, array: Any) -> Any:
        """An array as the calls see it."""
        seen = super().view(array)
        seen.buffer.device = None
        return seen


def arena_bytes(
    step: Callable[..., object], args: Sequence[object], passes: Iterable[str] = tuple(PASSES)
) -> int:
    """The memory of intermediates that `capture` gives this step, whose tensors lie on meta.

    Nothing is computed but what Python keeps up (learning rates, random states) and what is the
    same in every step.

    Raises:
        CaptureError, DeviceError: the step looks at numbers; it would not be captured either.
    """
    rehearsal = _Rehearsal()
    with place.on(meta.DEVICE), recording.to(rehearsal):
        result = step(*args)
    rehearsal.close()  # the result is still there, so it counts as wanted
    del result
    return Planned(optimized(rehearsal.calls, passes)).layout.nbytes
