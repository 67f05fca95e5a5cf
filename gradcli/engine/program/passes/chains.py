"""Chains: elementwise calls that feed one another do each block of their tensors together."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program import chain
from gradcli.engine.program.chain import FIRST_OUTPUT, FIRST_SCRATCH, Instruction
from gradcli.engine.program.passes.flow import Flow, as_shape, meets, nothing_like
from gradcli.engine.program.record import Buffer, Call, View

_SHORTEST = 32  # elements of a row that are worth a round of all steps


def chains(calls: list[Call]) -> list[Call]:
    """Groups of calls as one call each, at the place of the group's last."""
    flow = Flow(calls)
    group: dict[int, tuple[int, ...]] = {}
    whole: dict[tuple[int, ...], Call] = {}
    for i in range(len(calls)):
        if not may_belong(flow, i):
            continue
        group[i] = (i,)
        for members in _candidates(flow, i, group):
            fused = one_call(flow, members)
            if fused is not None:
                group.update((member, members) for member in members)
                whole[members] = fused
                break
    fused_at = {members[-1]: whole[members] for members in set(group.values()) if members in whole}
    absorbed = {member for members in set(group.values()) for member in members[:-1]}
    return [fused_at.get(i, call) for i, call in enumerate(calls) if i not in absorbed]


def may_belong(flow: Flow, i: int) -> bool:
    """Elementwise on one float type, with an output in order."""
    call = flow.calls[i]
    if call.function is not None or not FACTS[call.kernel].elementwise:
        return False
    (out,) = call.outputs
    alike = all(view.dtype is out.dtype for view in call.inputs)
    dense = out.contiguous and out.numel > 0 and not any(meets(v, out) for v in call.inputs)
    return alike and dense and out.dtype.is_floating_point


def _candidates(flow: Flow, i: int, group: dict[int, tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """Call i with all groups that feed it, or with one of them."""
    makers = [flow.maker(view.buffer) for view in flow.calls[i].inputs]
    feeding = {group[m] for m in makers if m is not None and m in group and m < i}
    if len(feeding) > 1:
        yield tuple(sorted({i, *(member for members in feeding for member in members)}))
    for members in sorted(feeding, key=lambda feeder: (-len(feeder), feeder)):
        yield (*members, i)


def one_call(flow: Flow, members: tuple[int, ...]) -> Call | None:
    """The members as one call; None where they do not fit, or something between forbids it."""
    if len(members) > chain.STEPS or not all(_may_wait(flow, i, members) for i in members):
        return None
    row = _row_length(flow, members)
    if row is None:
        return None
    slots = _Slots(flow, members, row)
    return slots.call() if slots.fill() else None


def _may_wait(flow: Flow, i: int, members: tuple[int, ...]) -> bool:
    """Whether call i may run at the place of the last member."""
    call, last = flow.calls[i], members[-1]
    (out,) = call.outputs
    if out.buffer.persistent and flow.checks(i, last):
        return False
    if not flow.users(out, i, last) <= set(members):
        return False
    return not any(flow.is_written(view, i, last) for view in call.inputs)


def _row_length(flow: Flow, members: tuple[int, ...]) -> int | None:
    """The longest n for which all tensors are (rows, n) that the kernel reads; None for none."""
    outputs = {flow.calls[i].outputs[0].buffer for i in members}
    count = flow.calls[members[0]].outputs[0].numel
    fitting = {count}
    broadcast = False
    for i in members:
        (out,) = flow.calls[i].outputs
        if out.numel != count:
            return None
        for view in flow.calls[i].inputs:
            if view.buffer in outputs or view.contiguous:
                continue
            lengths = {prod(out.shape[d:]) for d in range(len(out.shape))} - {0, 1}
            fits = {n for n in lengths if _rows(view, n) is not None}
            fitting = fitting & fits if broadcast else fits
            broadcast = True
    longest = max(fitting, default=0)
    return longest if longest == count or longest >= _SHORTEST else None


def _rows(view: View, n: int) -> View | None:
    """A tensor as (rows, n), if its elements along n are next to one another or all one."""
    rows = as_shape(view, (view.numel // n, n))
    return rows if rows is not None and rows.strides[1] in (0, 1) else None


class _Slots:
    """Who lies where: inputs and outputs in tensors, what only the group sees in scratch."""

    def __init__(self, flow: Flow, members: tuple[int, ...], row: int) -> None:
        self._flow = flow
        self._members = members
        self._row = row
        self._inputs: list[View] = []
        self._outputs: list[View] = []
        self._pairs: list[tuple[float, ...]] = [(0.0, 0.0)]
        self._slot: dict[Buffer, int] = {}  # of what members have made
        self._free = list(range(FIRST_SCRATCH + chain.SCRATCH - 1, FIRST_SCRATCH - 1, -1))
        self._steps: list[Instruction] = []
        self._last = {v.buffer: i for i in members for v in flow.calls[i].inputs}

    def fill(self) -> bool:
        """Place everything; False when there is too much, or nothing that anybody reads."""
        if not all(self._add(i) for i in self._members):
            return False
        return bool(self._outputs) and len(self._pairs) <= chain.PAIRS

    def _add(self, i: int) -> bool:
        call = self._flow.calls[i]
        operands = [self._operand(view) for view in call.inputs]
        for buffer in {view.buffer for view in call.inputs}:
            slot = self._slot.get(buffer, 0)
            if slot >= FIRST_SCRATCH and self._last[buffer] == i:
                self._free.append(slot)
        result = self._result(i, call.outputs[0])
        slots = [slot for slot in operands if slot is not None]
        if result is None or len(slots) < len(operands):
            return False
        self._steps.append(Instruction(call.kernel, tuple(slots), result, self._pair(call.options)))
        return True

    def _operand(self, view: View) -> int | None:
        if view.buffer in self._slot:
            slot = self._slot[view.buffer]
            return slot if view.whole else None
        rows = _rows(view, self._row)
        if rows is None or any(out.buffer is view.buffer for out in self._outputs):
            return None
        for slot, present in enumerate(self._inputs):
            if present.same(rows):
                return slot
        self._inputs.append(rows)
        return len(self._inputs) - 1 if len(self._inputs) <= chain.INPUTS else None

    def _result(self, i: int, out: View) -> int | None:
        own = self._flow.maker(out.buffer) == i and out.whole
        if own and not out.buffer.persistent and self._only_here(out.buffer):
            slot = self._free.pop() if self._free else None
        else:
            slot = self._output(out)
        if own and slot is not None:
            self._slot[out.buffer] = slot
        return slot

    def _only_here(self, buffer: Buffer) -> bool:
        return set(self._flow.readers(buffer)) <= set(self._members)

    def _output(self, out: View) -> int | None:
        rows = as_shape(out, (out.numel // self._row, self._row))
        views = [*self._inputs, *self._outputs]
        if rows is None or any(view.buffer is out.buffer for view in views):
            return None
        self._outputs.append(rows)
        count = len(self._outputs)
        return FIRST_OUTPUT + count - 1 if count <= chain.OUTPUTS else None

    def _pair(self, options: tuple[float, ...]) -> int:
        """The place of a row's p and q."""
        pair = (*options, 0.0, 0.0)[:2]
        if pair not in self._pairs:
            self._pairs.append(pair)
        return self._pairs.index(pair)

    def call(self) -> Call:
        """The chain."""
        none = nothing_like(self._outputs[0])
        inputs = [*self._inputs, *(none,) * (chain.INPUTS - len(self._inputs))]
        outputs = [*self._outputs, *(none,) * (chain.OUTPUTS - len(self._outputs))]
        options = tuple(number for pair in self._pairs for number in pair)
        return Call("chain", tuple(inputs), tuple(outputs), chain.packed(self._steps), options)
