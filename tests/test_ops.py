"""Every op and function, on every sample it declares: adding one adds no test file.

Values are held against references in plain Python for ops; tests/parity holds both against torch.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from grid import Grid
from implied_refusals import refusals
from reference import REFERENCES

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.composite import FUNCTIONS
from gradcli.engine.device import cpu
from gradcli.engine.dtype import DTYPES
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.op import Op, declared_ops
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError

CASES = [
    pytest.param(op, sample, id=f"{op.name}{sample}") for op in every_op() for sample in op.samples
]
OP_CASES = [case for case in CASES if isinstance(case.values[0], Op)]
WRONG = [
    pytest.param(op, one, id=f"{op.name}{one.sample}-{one.dtype}")
    for op in every_op()
    for one in refusals(op)
]


def grid(x: Tensor | None) -> Grid | None:
    return None if x is None else Grid(x.shape, x.reshape(-1).tolist())


def grids(result: Any) -> list[Grid]:
    return list(result) if isinstance(result, tuple) else [result]


def close(found: float, wanted: float, rtol: float, atol: float) -> bool:
    if math.isnan(wanted) or math.isinf(wanted):
        return math.isnan(found) if math.isnan(wanted) else found == wanted
    return abs(found - wanted) <= atol + rtol * abs(wanted)


def same_bits(a: tuple[Tensor, ...], b: tuple[Tensor, ...]) -> bool:
    return [(x.dtype, x.shape, bytes(x.contiguous().memoryview())) for x in a] == [
        (y.dtype, y.shape, bytes(y.contiguous().memoryview())) for y in b
    ]


def assert_equals_reference(op: Op, sample: Sample, dtype: Any, rtol: float, atol: float) -> None:
    inputs = gradcheck.make_inputs(sample, dtype=dtype)
    before = [grid(x) for x in inputs]
    outputs = gradcheck.call(op, sample, inputs)
    wanted = grids(REFERENCES[op.name](*before, **sample.options))
    assert len(outputs) == len(wanted)
    for y, want in zip(outputs, wanted, strict=True):
        assert y.shape == want.shape
        for found, value in zip(y.reshape(-1).tolist(), want.flat, strict=True):
            assert close(found, value, rtol, atol), (found, value)


def sizes(op: Row) -> set[int]:
    """Those that go in, even where they are refused; or come out where no tensor goes in."""
    tried = [*op.samples, *(one.sample for one in op.wrong)]
    shapes = [one.shape for sample in tried for one in sample.inputs]
    for sample in op.samples:
        if not sample.inputs:
            shapes += [y.shape for y in gradcheck.call(op, sample, [])]
    return {size for shape in shapes for size in shape}


def test_every_op_declares_calls_with_size_0_and_size_1() -> None:
    assert [(op.name, sizes(op)) for op in every_op() if not sizes(op) >= {0, 1}] == []


def test_every_function_says_what_it_is_tried_with() -> None:
    """All but what is no op: the walk back, other libraries' arrays, text, where draws stand."""
    silent = {row.name for row in FUNCTIONS.values() if not row.samples and row.name[0] != "_"}
    assert silent == {"backward", "format", "get_rng_state", "numpy", "set_rng_state"}


def test_every_op_has_a_reference() -> None:
    assert {op.name for op in declared_ops()} - set(REFERENCES) == set()


@pytest.mark.parametrize(("op", "sample"), OP_CASES)
def test_value_equals_the_reference_in_float64(op: Op, sample: Sample) -> None:
    before = cpu.isa()
    for name in ("baseline", "avx2", "avx512", "neon"):
        if cpu.set_isa(name):
            assert_equals_reference(op, sample, engine.float64, 1e-11, 1e-12)
    cpu.set_isa(before)


@pytest.mark.parametrize(("op", "sample"), OP_CASES)
def test_value_equals_the_reference_in_float32(op: Op, sample: Sample) -> None:
    inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
    outputs = gradcheck.call(op, sample, inputs)
    if "dtype" not in sample.options and any(x is not None for x in inputs):
        assert all(y.dtype is not engine.float64 for y in outputs)
    # 2e-5: a few hundred roundings of 6e-8, the most that these small samples can collect.
    assert_equals_reference(op, sample, engine.float32, 2e-5, 1e-5)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_gradient_equals_finite_differences(op: Row, sample: Sample) -> None:
    assert [str(failure) for failure in gradcheck.check_declaration(op, sample)] == []


def transposed(x: Tensor) -> Tensor:
    order = list(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def sliced(x: Tensor) -> Tensor:
    """The same numbers inside a larger block, with an offset and gaps."""
    whole = engine.full([size + 3 for size in x.shape], 7, dtype=x.dtype)
    inside = whole[tuple(slice(2, 2 + size) for size in x.shape)]
    return inside.copy_(x)


def stepped(x: Tensor) -> Tensor:
    whole = engine.full([2 * size + 1 for size in x.shape], 7, dtype=x.dtype)
    inside = whole[tuple(slice(1, None, 2) for _ in x.shape)]
    return inside.copy_(x)


def values_and_gradients(
    op: Row, sample: Sample, inputs: list[Tensor | None]
) -> tuple[Tensor, ...]:
    inputs = [None if x is None else x.detach() for x in inputs]
    for x in inputs:
        if x is not None and x.is_floating_point() and op.differentiable:
            x.requires_grad_()
    outputs = gradcheck.call(op, sample, inputs)
    for y in outputs:
        if y.requires_grad:
            start = engine.tensor([math.sin(i) for i in range(y.numel())], dtype=y.dtype)
            y.backward(start.reshape(y.shape), retain_graph=True)
    grads = [x.grad for x in inputs if x is not None]
    return (*(y.detach() for y in outputs), *(g for g in grads if g is not None))


@pytest.mark.parametrize("layout", [transposed, sliced, stepped])
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_layout_does_not_change_a_bit(op: Row, sample: Sample, layout: Any) -> None:
    for dtype in (engine.float32, engine.float64):
        plain = gradcheck.make_inputs(sample, dtype=dtype)
        odd = [None if x is None else layout(x) for x in gradcheck.make_inputs(sample, dtype=dtype)]
        wanted = values_and_gradients(op, sample, plain)
        assert same_bits(values_and_gradients(op, sample, odd), wanted)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_stride_0_does_not_change_a_bit(op: Row, sample: Sample) -> None:
    for i, one in enumerate(sample.inputs):
        for d, size in enumerate(one.shape):
            written = i == 0 and (op.name.endswith("_") or op.name == "setitem")
            if size == 0 or one.kind in ("none", "distinct") or written:
                continue
            repeated = gradcheck.make_inputs(sample, dtype=engine.float32)
            x = repeated[i]
            assert x is not None
            first = x[tuple(slice(0, 1) if k == d else slice(None) for k in range(x.ndim))]
            repeated[i] = first.expand(one.shape)
            plain = list(repeated)
            plain[i] = first.expand(one.shape).clone()
            wanted = values_and_gradients(op, sample, plain)
            assert same_bits(values_and_gradients(op, sample, repeated), wanted)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_threads_do_not_change_a_bit(op: Row, sample: Sample) -> None:
    before = cpu.threads()
    results = []
    for threads in (1, 2, 3):
        cpu.set_threads(threads)
        inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
        results.append(values_and_gradients(op, sample, inputs))
    cpu.set_threads(before)
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])


# For these a NaN is an element like others; their own tests say what becomes of it.
ORDERED = {"sort", "topk", "msort", "kthvalue", "unique"}  # it moves to the end
LEFT_OUT = {"nansum", "nanmean", "nanmedian"}  # it does not count
COMPARED = {"eq_", "ne_", "lt_", "le_", "gt_", "ge_"}  # it equals nothing, and that is 0 or 1
COMPARED |= {"logical_not_", "logical_and_", "logical_or_", "logical_xor_"}  # it is true
REPLACED = {"nan_to_num", "nan_to_num_"}  # by a number, as wanted
REFUSED = {"bernoulli", "bernoulli_", "multinomial", "require_finite"}  # by name
NAN_IS_PLAIN = ORDERED | LEFT_OUT | COMPARED | REPLACED | REFUSED


@pytest.mark.parametrize(
    ("op", "sample"), [c for c in CASES if c.values[0].name not in NAN_IS_PLAIN]
)
def test_nan_in_gives_nan_out(op: Row, sample: Sample) -> None:
    """Whatever depends on an element must be NaN when that element is."""

    def outputs_with(i: int, at: int, value: float | None) -> list[list[float]]:
        inputs = gradcheck.make_inputs(sample)
        x = inputs[i]
        assert x is not None
        numbers: Any = x.memoryview().cast("d")
        if value is not None:
            numbers[at] = value
        outputs = gradcheck.call(op, sample, inputs)
        return [y.reshape(-1).tolist() for y in outputs if y.is_floating_point()]

    for i, x in enumerate(gradcheck.make_inputs(sample)):
        if x is None or not x.is_floating_point():
            continue
        for at in range(min(x.numel(), 12)):
            plain, large, nan = (outputs_with(i, at, v) for v in (None, 1000.0, math.nan))
            for a, b, c in zip(plain, large, nan, strict=True):
                eaten = [
                    k for k in range(len(a)) if not _equal(a[k], b[k]) and not math.isnan(c[k])
                ]
                assert eaten == [], f"element {at} of input {i} is NaN, outputs {eaten} not"


def _equal(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize(("op", "sample"), [c for c in OP_CASES if c.values[0].decomposition])
def test_fused_equals_decomposed(op: Row, sample: Sample) -> None:
    inputs = gradcheck.make_inputs(sample)
    fused = values_and_gradients(op, sample, inputs)
    with engine.decomposed():
        parts = values_and_gradients(op, sample, inputs)
    for one, other in zip(fused, parts, strict=True):
        assert one.shape == other.shape
        assert one.dtype is other.dtype
        pairs = zip(one.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
        assert all(close(a, b, 1e-10, 1e-11) for a, b in pairs)


@pytest.mark.parametrize(("op", "wrong"), WRONG)
def test_wrong_input_is_refused_by_name(op: Row, wrong: Any) -> None:
    dtype = DTYPES[wrong.dtype]
    inputs = gradcheck.make_inputs(wrong.sample, dtype=dtype)
    with pytest.raises(GradcliError) as caught:
        gradcheck.call(op, wrong.sample, inputs)
    assert wrong.match in str(caught.value)
    assert str(caught.value).startswith(f"{op.name}:")


@pytest.mark.parametrize("op", declared_ops(), ids=lambda op: op.name)
def test_a_list_instead_of_a_tensor_is_refused(op: Op) -> None:
    if not op.inputs:
        return
    with pytest.raises(GradcliError, match=op.name):
        op(*([[1.0]] * len(op.inputs)), **op.samples[0].options)
