"""No kernel writes behind the scratch that its plan asks for, or expects to find something in it.

Each call of an op and of its gradient runs as a program of its own, with scratch of that very size:
what all threads share lies before a mark, and what a thread has for itself ends where its block
does, which the address sanitizer watches (.ci/run sanitize).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from short_ways import close_short_ways

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import ffi
from gradcli.engine.device.program import CallList, Compiled, Transfers
from gradcli.engine.gradcheck import Row
from gradcli.engine.kernelcheck.samples import resized
from gradcli.engine.op import declared_ops
from gradcli.engine.sample import Sample
from gradcli.errors import GradcliError

MARK = b"\xa5" * 256
GARBAGE = b"\xff"  # NaN, as float and as double
PLAIN_RUN = cpu.run
GRADIENTS = 3  # results that are gone back from
RESIZED = 2  # samples that are tried in other sizes


def run_with_exact_scratch(
    kernel: str, tensors: Sequence[Any], sizes: Sequence[int] = (), options: Sequence[float] = ()
) -> None:
    """cpu.run, by a program of one call."""
    calls = CallList(1)
    calls.add(kernel, [tensor[0] for tensor in tensors], sizes, options)
    (plan,) = calls.plan()
    shared = cpu.allocate(plan.shared_bytes + len(MARK))
    ffi.memmove(shared.data, GARBAGE * plan.shared_bytes + MARK, shared.nbytes)
    parts = [(0, phase, phase) for phase in range(plan.phases)]
    program = Compiled(calls, parts, [], [(cpu.address(shared), plan.shared_bytes)])
    _, refusal = program.replay(0, 1, Transfers(), Transfers())
    behind = bytes(cpu.window(shared, plan.shared_bytes, len(MARK)))
    assert behind == MARK, f"{kernel} writes behind its shared scratch"
    if refusal:
        raise refusal


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, so that its own scratch ends the block; all calls with scratch of exact size."""
    before = cpu.threads()
    cpu.set_threads(1)
    close_short_ways(monkeypatch)
    monkeypatch.setattr(cpu, "run", run_with_exact_scratch)
    yield
    cpu.set_threads(before)


def outputs(op: Row, sample: Sample) -> list[bytes]:
    """The results and gradients of a sample, to the bit."""
    inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
    for x in inputs:
        if x is not None and x.is_floating_point() and op.differentiable:
            x.requires_grad_()
    results = gradcheck.call(op, sample, inputs)
    for y in results[:GRADIENTS]:
        if y.requires_grad:
            y.backward(engine.ones_like(y), retain_graph=True)
    gradients = [x.grad for x in inputs if x is not None and x.grad is not None]
    return [bytes(x.detach().contiguous().memoryview()) for x in (*results, *gradients)]


def sized(op: Row) -> Iterator[Sample]:
    """The samples, and the first of them in other sizes: scratch grows with the sizes, and small
    ones are forgiven much, as scratch is rounded up to 64 bytes."""
    yield from op.samples
    for sample in op.samples[:RESIZED]:
        yield from resized(sample)


@pytest.mark.parametrize("op", declared_ops(), ids=lambda op: op.name)
def test_scratch_of_exact_size_is_enough(op: Row, one_thread: None) -> None:
    for sample in sized(op):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cpu, "run", PLAIN_RUN)
            try:
                wanted = outputs(op, sample)
            except GradcliError:  # of these sizes no call can be
                continue
        assert outputs(op, sample) == wanted
