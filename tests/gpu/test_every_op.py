"""Every op on a device, on every sample it declares, equals the CPU in float64."""

from __future__ import annotations

import math

import pytest
from on_host import gpu  # noqa: F401

from gradcli import engine
from gradcli.engine import devicecheck, gradcheck
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.op import Op
from gradcli.engine.ops.family import map_unary
from gradcli.engine.sample import sample
from gradcli.engine.tensor import Tensor


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("op", every_op(), ids=lambda op: op.name)
def test_results_and_gradients_are_those_of_the_cpu(op: Row) -> None:
    assert [str(one) for case in op.samples for one in devicecheck.check(op, case, "cuda")] == []


def halved(op: Row, device: str) -> list[Tensor]:
    """Results and gradients of an op's first sample in bfloat16."""
    given = gradcheck.make_inputs(op.samples[0], dtype=engine.bfloat16)
    inputs = [None if x is None else x.to(device).detach() for x in given]
    leaves = [x for x in inputs if x is not None and x.is_floating_point() and op.differentiable]
    for x in leaves:
        x.requires_grad_()
    outputs = gradcheck.call(op, op.samples[0], inputs)
    for y in outputs:
        if y.requires_grad:
            seed = engine.linspace(-1, 1, y.numel()).reshape(y.shape).to(device)
            y.backward(seed.to(y.dtype), retain_graph=True)
    return [*(y.detach() for y in outputs), *(x.grad for x in leaves if x.grad is not None)]


def takes_floats(op: Row) -> bool:
    kinds = {one.kind for one in op.samples[0].inputs} - {"index", "sign", "bool", "none"}
    given = {"dtype", "device"} & set(op.samples[0].options)
    return bool(kinds) and not given and op.name not in ("empty_like", "new_empty")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("op", [*filter(takes_floats, every_op())], ids=lambda op: op.name)
def test_in_bfloat16_they_are_those_of_the_cpu_to_a_rounding(op: Row) -> None:
    found, wanted = halved(op, "cuda"), halved(op, "cpu")
    assert [(x.dtype, x.shape) for x in found] == [(y.dtype, y.shape) for y in wanted]
    for x, y in zip(found, wanted, strict=True):
        there, here = (one.cpu().float().reshape(-1).tolist() for one in (x, y))
        largest = max((abs(b) for b in here if math.isfinite(b)), default=0.0)
        for a, b in zip(there, here, strict=True):
            assert a == b or (a != a and b != b) or abs(a - b) <= 2**-7 * largest


@pytest.mark.usefixtures("gpu")
def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Op(lambda x: map_unary("sin", x), name="right", samples=[sample((3,))], why="flat")
    monkeypatch.setattr(
        right, "forward", lambda x: map_unary("sin" if x.storage.device is None else "cos", x)
    )
    (found,) = devicecheck.check(right, right.samples[0], "cuda")
    assert "result 0: element 0 is" in str(found)
