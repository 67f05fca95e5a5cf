"""Calls with one index changed: to the first that is out of range, the last that is not, and -1."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli.engine.device.gpu.launch import Errors, LaunchList
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.kernelcheck.calls import BlockData, CheckedCall
from gradcli.engine.kernelcheck.replay import on_cpu, plan_of
from gradcli.errors import GradcliError

POKED = ", with index "  # in what is said to have made a call
FAR = 1 << 40
TRIED = 2  # calls that are launched in one way


def poked_calls(calls: Sequence[CheckedCall]) -> list[CheckedCall]:
    """Changed copies of a few of a kernel's calls, where it refuses indices."""
    tried: Counter[tuple[str, ...]] = Counter()
    found: list[CheckedCall] = []
    for call in calls:
        plan = plan_of(call)
        way = tuple(one.kernel for one in plan.launches)
        if tried[way] < TRIED and _may_refuse(plan) and _indices(call):
            tried[way] += 1
            found += _changed(call)
    return found


def _may_refuse(plan: LaunchList) -> bool:
    return any(isinstance(arg, Errors) for one in plan.launches for arg in one.args)


def _indices(call: CheckedCall) -> list[int]:
    """Blocks of whole numbers that the kernel reads."""
    read = {tensor.block for tensor in call.tensors[: FACTS[call.kernel].inputs]}
    return [k for k in sorted(read) if call.blocks[k].dtype.name == "int64" and call.blocks[k].data]


def _changed(call: CheckedCall) -> Iterator[CheckedCall]:
    for k in _indices(call):
        try:
            refused = on_cpu(_poked(call, k, FAR)).refusal
        except GradcliError:
            continue
        if refused is None:  # no index
            continue
        limit = refused[2]
        yield from (_poked(call, k, value) for value in (limit, limit - 1, -1))


def _poked(call: CheckedCall, number: int, value: int) -> CheckedCall:
    """The call with another last number of a block."""
    data = call.blocks[number].data[:-8] + struct.pack("q", value)
    blocks = list(call.blocks)
    blocks[number] = BlockData(call.blocks[number].dtype, data)
    return replace(call, blocks=tuple(blocks), source=f"{call.source}{POKED}{value}")
