"""Whose memory the results of every op and function lie in is what they declare.

Tried on every sample and on calls near it: sizes of 1, options that leave nothing to do.
"""

from __future__ import annotations

from typing import Any

import pytest
from variants import LAYOUTS, inputs_of, places, variants

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.tensor import Tensor

ROWS = [pytest.param(op, id=op.name) for op in every_op()]
EITHER = [op for op in every_op() if op.shares == "either" and op.name != "transfer"]  # of a GPU
REPEATS = [op for op in every_op() if op.shares == "repeats"]
VIEWS = ("view", "repeats", "either")


def calls(op: Row) -> list[tuple[str, list[Tensor | None], tuple[Tensor, ...]]]:
    """Every call near the samples that is not refused: inputs and results."""
    found = []
    for sample in variants(op):
        for dtype in (engine.float32, engine.float64, engine.int64):
            for layout in LAYOUTS if dtype is engine.float32 else LAYOUTS[:1]:
                inputs = inputs_of(sample, dtype, layout)
                try:
                    outputs = gradcheck.call(op, sample, inputs)
                except Exception:
                    assert sample not in op.samples or dtype is not engine.float64
                    continue  # a call near a sample may be a wrong one
                found.append((f"{sample} {dtype}", inputs, outputs))
    return found


def elements(x: Tensor) -> set[tuple[int, int]]:
    """The block of memory and the place in it, of each element."""
    a = x.array
    return {(id(a.storage), place) for place in places(a.offset, a.shape, a.strides)}


def lender(y: Tensor, inputs: list[Tensor | None]) -> Tensor | None:
    """The input in whose memory a result lies."""
    return next((x for x in inputs if x is not None and x.array.storage is y.array.storage), None)


def wrong_memory(op: Row, inputs: list[Tensor | None], outputs: tuple[Tensor, ...]) -> list[str]:
    """What is not as declared."""
    found = []
    full = [y for y in outputs if y.numel()]
    for y in full:
        shared = lender(y, inputs)
        if not y.array.storage.writable:
            found.append("its memory is a constant")
        if (shared is None) != (op.shares not in (*VIEWS, "input")) and op.shares != "either":
            found.append("it is a copy" if shared is None else "it is a view")
        if op.shares == "input" and y is not inputs[0]:
            found.append("it is not the input that was written")
        if op.shares != "repeats" and len(elements(y)) < y.numel():
            found.append("its elements overlap")
        if shared is not None and y is not shared and not y.alias:
            found.append("it does not say that it is a view")
    if not op.shares and sum(len(elements(y)) for y in full) > len(
        set().union(*map(elements, full))
    ):
        found.append("two results overlap")
    return found


@pytest.mark.parametrize("decomposed", [False, True], ids=["fused", "decomposed"])
@pytest.mark.parametrize("op", ROWS)
def test_results_lie_in_the_memory_that_is_declared(op: Row, decomposed: bool) -> None:
    with engine.decomposed(decomposed):
        tried = calls(op)
    assert tried
    wrong = [(call, what) for call, *both in tried if (what := wrong_memory(op, *both))]
    assert wrong == []


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in EITHER])
def test_what_may_be_a_view_or_a_copy_is_both_at_times(op: Row) -> None:
    tried = [(y, inputs) for _, inputs, outputs in calls(op) for y in outputs if y.numel()]
    for sample in op.samples:  # of its own result, too: what is cast already, is not again
        first, *rest = gradcheck.make_inputs(sample, dtype=engine.float32)
        (y,) = gradcheck.call(op, sample, [first, *rest])
        if first is not None and y.shape == first.shape and y.numel():
            tried += [(z, [y]) for z in gradcheck.call(op, sample, [y, *rest])]
    assert {lender(y, inputs) is None for y, inputs in tried} == {True, False}


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in REPEATS])
def test_what_may_repeat_elements_does_at_times(op: Row) -> None:
    outputs = [y for _, _, results in calls(op) for y in results]
    assert any(len(elements(y)) < y.numel() for y in outputs)


def test_a_repeated_row_of_one_number_is_written_once() -> None:
    column: Any = engine.tensor([[1.0], [2.0]])
    for y in (column.repeat(1, 3), column.tile(1, 3), column.repeat_interleave(3, 1)):
        y[0, 0] = 9.0
        assert y.tolist() == [[9.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    assert column.tolist() == [[1.0], [2.0]]


def test_a_product_of_one_number_does_not_change_a_parameter() -> None:
    weight = engine.nn.Parameter(engine.tensor([[2.0], [3.0]]))
    with engine.no_grad():
        weight.prod(1).zero_()
    assert weight.tolist() == [[2.0], [3.0]]


def test_no_result_lies_in_the_memory_of_an_earlier_one() -> None:
    """No constant, and no scratch memory, is handed out twice."""
    wrong = []
    for op in every_op():
        for sample in op.samples:
            inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
            first = gradcheck.call(op, sample, inputs)
            again = gradcheck.call(op, sample, gradcheck.make_inputs(sample, dtype=engine.float32))
            blocks = {id(y.array.storage) for y in first}
            wrong += [f"{op.name}{sample}" for y in again if id(y.array.storage) in blocks]
    assert wrong == []
