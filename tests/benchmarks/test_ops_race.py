"""The race of single calls: cases are the same calculation in both libraries; its verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import op_cases, op_ratios, tables, targets
from benchmarks.op_cases import HAVE_GRADIENT, OPS, Inputs
from gradcli import engine
from gradcli.engine.nn import functional

RANDOM = ("T.rand(n, n)", "T.randn(n, n)", "T.randperm(n * n)")


@pytest.mark.parametrize("dtype", op_cases.DTYPES)
@pytest.mark.parametrize("code", OPS)
def test_each_case_runs_in_each_way(code: str, dtype: str) -> None:
    there = Inputs(engine, functional, 32, dtype).of(code)
    assert op_cases.forward(code, there)() is not None
    if code in HAVE_GRADIENT:
        assert all(gradient is not None for gradient in op_cases.backward(code, there)())


@pytest.mark.parity
@pytest.mark.parametrize("code", OPS)
def test_each_case_is_the_same_calculation_in_torch(code: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = Inputs(torch, torch.nn.functional, 32, "float32").of(code)
    ours = Inputs(engine, functional, 32, "float32").of(code)
    for name, value in theirs.items():
        if isinstance(value, torch.Tensor):
            ours[name] = engine.tensor(value.numpy())
    compare(op_cases.forward(code, ours)(), op_cases.forward(code, theirs)(), code in RANDOM)
    if code in HAVE_GRADIENT:
        compare(op_cases.backward(code, ours)(), op_cases.backward(code, theirs)(), False)


def compare(ours: Any, theirs: Any, random: bool) -> None:
    """The same shapes and, where they are not drawn, the same numbers."""
    if isinstance(theirs, (tuple, list)):
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other, random)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
    if not random:
        numbers = theirs.detach().double().flatten().tolist()
        got = ours.detach().to(engine.float64).reshape(-1).tolist()
        assert got == pytest.approx(numbers, rel=2e-4, abs=2e-5)


def row(ours: float, torch: float) -> dict[str, dict[str, float]]:
    return {"gradcli": {"ms": ours}, "torch": {"ms": torch}}


RESULT: dict[str, Any] = {
    "rows": {
        "x + y": {
            "float32 forward 1024": row(1.0, 0.5),
            "float32 forward 1048576": row(1.0, 3.0),
            "bfloat16 forward 1024": {"gradcli": {"ms": 1.0}, "torch": {"missing": "no"}},
        },
        "x.sin()": {"float32 forward 1048576": row(1.0, 0.75)},
    }
}


def test_verdicts_name_the_call_that_is_furthest_behind() -> None:
    mean, large, small = targets.VERDICTS["ops"](RESULT)
    assert mean.figure == pytest.approx((0.5 * 3.0 * 0.75) ** (1 / 3))
    assert (large.figure, small.figure) == (0.75, 0.5)
    assert "slowest of 2 (1 below the limit): x.sin(), float32 forward 1048576" in large.what
    assert not (large.passed or small.passed)


def test_a_line_of_the_table_has_the_ratios_by_size() -> None:
    lines = list(op_ratios.lines(RESULT))
    assert lines[0] == ("`x + y`", "0.50 3.00", "-", "-", "-")
    assert "| `x.sin()` | 0.75 | - | - | - |" in tables.TABLES["ops"](RESULT)
