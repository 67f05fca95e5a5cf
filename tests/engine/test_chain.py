"""The kernel `chain`: rows on blocks of their tensors, with the bits of the calls one by one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from test_calls import status, tensor

from gradcli import engine
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import cpu
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import FACTS, lib
from gradcli.engine.program.chain import Instruction, packed

# A chain is of one floating-point type: no truth values and no rows of whole numbers.
TRUTHS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}
WHOLE = {"bitwise_and", "bitwise_or", "bitwise_xor", "pow_whole"}
ROWS = sorted({name for name in FACTS if FACTS[name].elementwise} - TRUTHS - WHOLE)
SHAPES = [(1, 1), (3, 5), (1, 16385), (7, 2500)]
P, Q = 0.25, 1.5


def normal(shape: tuple[int, ...], dtype: Any, shift: float) -> Array:
    numbers = [math.sin(1.7 * i + shift) + 1.5 for i in range(math.prod(shape))]
    made: Array = engine.tensor(numbers, dtype=dtype).reshape(shape).array
    return made


def bits(x: Array) -> bytes:
    return bytes(engine.Tensor(x).memoryview())


def chained(steps: list[Instruction], inputs: list[Array], outputs: int) -> list[Array]:
    none = empty((0,), inputs[0].dtype)
    made = [empty(inputs[0].shape, inputs[0].dtype) for _ in range(outputs)]
    tensors = [*inputs, *[none] * (5 - len(inputs)), *made, *[none] * (3 - outputs)]
    run("chain", *tensors, sizes=packed(steps), options=(P, Q, 3.0, 4.0))
    return made


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("row", ROWS)
def test_each_row_has_the_bits_of_its_own_call(row: str) -> None:
    count = FACTS[row].inputs
    for dtype in (engine.float32, engine.float64):
        for shape in SHAPES:
            inputs = [normal(shape, dtype, k) for k in range(count)]
            if FACTS[row].any_strides and shape[1] > 1:
                inputs[-1] = normal((1, shape[1]), dtype, 9).expand(shape)
                if count > 2:
                    inputs[1] = normal((shape[0], 1), dtype, 9).expand(shape)
            out = empty(shape, dtype)
            run(row, *inputs, out, options=(P, Q))
            (alone,) = chained([Instruction(row, tuple(range(count)), 5)], inputs, 1)
            twice = [Instruction(row, tuple(range(count)), 8), Instruction("neg", (8,), 5)]
            (negated,) = chained(twice, inputs, 1)
            assert bits(alone) == bits(out)
            run("neg", out, out)
            assert bits(negated) == bits(out)


def test_steps_read_outputs_and_scratch_and_their_own_options() -> None:
    for threads in (1, 2, 3):
        before = cpu.threads()
        cpu.set_threads(threads)
        x, y = (normal((40, 1000), engine.float32, k) for k in (0, 1))
        steps = [
            Instruction("mul", (0, 1), 5),
            Instruction("clamp", (5,), 8, 1),
            Instruction("sub", (8, 0), 15),
            Instruction("add", (15, 5), 6),
            Instruction("clamp", (6,), 7),
        ]
        mul, add, clamp = (engine.Tensor(a) for a in chained(steps, [x, y], 3))
        a, b = engine.Tensor(x), engine.Tensor(y)
        expected = (a * b).clamp(3.0, 4.0) - a + a * b
        assert bits(mul.array) == bits((a * b).array)
        assert bits(add.array) == bits(expected.array)
        assert bits(clamp.array) == bits(expected.clamp(P, Q).array)
        cpu.set_threads(before)


def test_nan_comes_through() -> None:
    x = engine.ones(1, 3000)
    x[0, 1500] = math.nan
    steps = [
        Instruction("relu", (0,), 8),
        Instruction("tanh", (8,), 9),
        Instruction("add", (9, 0), 5),
    ]
    (out,) = chained(steps, [x.array], 1)
    assert [i for i, v in enumerate(engine.Tensor(out).tolist()[0]) if math.isnan(v)] == [1500]


def test_no_rows_or_no_columns_are_nothing_to_do() -> None:
    for shape in [(0, 5), (5, 0)]:
        (out,) = chained([Instruction("exp", (0,), 5)], [empty(shape, engine.float32)], 1)
        assert out.shape == shape


NONE = [0]


def call(steps: list[Instruction] | list[int], **changed: Any) -> int:
    made = dict.fromkeys(("a", "b", "c", "d", "e", "x", "y", "z"), NONE)
    made |= {"a": [3, 40], "b": [3, 40], "x": [3, 40]} | changed
    tensors = [t if not isinstance(t, list) else tensor(t) for t in made.values()]
    sizes = packed(steps) if isinstance(steps[0], Instruction) else tuple(steps)  # type: ignore[arg-type]
    return status("chain", *tensors, sizes=[*sizes, *[0] * (16 - len(sizes))])


ADD = [Instruction("add", (0, 1), 5)]


def test_steps_that_hold_nothing_together_are_refused() -> None:
    assert call(ADD) == lib.GC_OK
    wrong = [
        [Instruction("add", (0, 2), 5)],  # an input that is not there
        [Instruction("add", (0, 5), 5)],  # an output before it is written
        [Instruction("add", (0, 8), 5)],  # scratch before it is written
        [Instruction("add", (0, 1), 0)],  # into an input
        [Instruction("add", (0, 1), 6)],  # into an output that is not there
        [Instruction("add", (0, 1), 8)],  # the output stays unwritten
        [Instruction("add", (0, 1), 5, 4)],  # a fifth pair of options
        *[[Instruction(name, (0,), 5)] for name in ("eq", "copy", "matmul", "chain", "sum")],
    ]
    assert {call(steps) for steps in wrong} == {lib.GC_BAD_SHAPE}


def test_numbers_that_are_no_steps_are_refused() -> None:
    for count in (0, -1, 16, 2**31, 2**62, -(2**63)):
        assert call([count, *packed(ADD)[1:]]) == lib.GC_BAD_SHAPE
    for step in (-1, len(KERNELS), 65535, packed(ADD)[1] + (1 << 40), 2**62, -(2**63)):
        assert call([1, step]) == lib.GC_BAD_SHAPE


def test_tensors_that_do_not_fit_are_refused() -> None:
    assert call(ADD, b=[40, 3]) == lib.GC_BAD_SHAPE
    assert call(ADD, b=[120]) == lib.GC_BAD_SHAPE
    assert call(ADD, b=tensor([3, 40], dtype=1)) == lib.GC_BAD_SHAPE
    assert call(ADD, x=[120], a=[120], b=[120]) == lib.GC_BAD_SHAPE
    assert call(ADD, x=tensor([3, 40], strides=[80, 1])) == lib.GC_BAD_BOUNDS
    wide = cpu.allocate(3 * 80 * 4)
    assert call(ADD, x=tensor([3, 40], strides=[80, 1], storage=wide)) == lib.GC_BAD_SHAPE
    assert call(ADD, b=tensor([3, 40], strides=[80, 1], storage=wide)) == lib.GC_OK
    assert call(ADD, b=tensor([3, 40], strides=[80, 2], storage=wide)) == lib.GC_BAD_SHAPE
    assert call(ADD, b=tensor([3, 40], strides=[0, 0])) == lib.GC_OK
    repeated = tensor([3, 40], strides=[1, 0])
    assert call([Instruction("exp", (1,), 5)], b=repeated) == lib.GC_BAD_SHAPE
    assert call(ADD, b=repeated) == lib.GC_OK


def test_an_input_is_overwritten_only_when_no_later_step_reads_it() -> None:
    shared = tensor([3, 40])
    again = [Instruction("exp", (0,), 5), Instruction("add", (5, 0), 6)]
    before = [Instruction("add", (0, 0), 8), Instruction("add", (8, 0), 5)]
    assert call(again, a=shared, x=shared, y=[3, 40]) == lib.GC_BAD_SHAPE
    assert call(again, a=shared, y=shared, x=[3, 40]) == lib.GC_OK
    assert call(before, a=shared, x=shared) == lib.GC_OK
    moved = tensor([3, 40], storage=None)
    moved.data, moved.nbytes = shared.data, shared.nbytes
    assert call(again, a=shared, b=moved, x=shared, y=[3, 40]) == lib.GC_BAD_SHAPE
    assert call(again, a=shared, x=moved, y=moved) == lib.GC_OVERLAP
