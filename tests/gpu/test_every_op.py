"""Every op on a device, on every sample that it declares: as on the CPU, in bfloat16 too."""

from __future__ import annotations

import pytest
from on_host import gpu  # noqa: F401

from gradcli.engine import devicecheck
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.op import Op
from gradcli.engine.ops.elementwise.family import map_unary
from gradcli.engine.sample import sample


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("op", every_op(), ids=lambda op: op.name)
def test_results_and_gradients_are_those_of_the_cpu(op: Row) -> None:
    assert [str(one) for case in op.samples for one in devicecheck.check(op, case, "cuda")] == []


@pytest.mark.usefixtures("gpu")
def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Op(lambda x: map_unary("sin", x), name="right", samples=[sample((3,))], why="flat")
    monkeypatch.setattr(
        right, "forward", lambda x: map_unary("sin" if x.storage.device is None else "cos", x)
    )
    single, half = devicecheck.check(right, right.samples[0], "cuda")
    assert "result 0: element 0 is" in str(single)
    assert "in bfloat16, result 0: element 0 is" in str(half)
