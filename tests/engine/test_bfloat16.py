"""bfloat16 as a type of storage: how numbers are rounded, and every op on it."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import gradcheck, nn, optim
from gradcli.engine.array import empty, full, run
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.nn import functional as F
from gradcli.engine.op import Op
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

HALF = engine.bfloat16
OTHERS = [engine.float64, engine.int32, engine.int64, engine.uint8, engine.bool_]
UNIT = 2.0**-8  # the most that a rounding moves a number of size 1


def bits_of(x: Tensor) -> list[int]:
    """The bits of bfloat16 numbers."""
    data = bytes(x.contiguous().memoryview())
    return list(struct.unpack(f"={len(data) // 2}H", data))


def from_bits(bits: list[int]) -> Tensor:
    return engine.frombuffer(bytearray(struct.pack(f"={len(bits)}H", *bits)), dtype=HALF)


def floats(bits: list[int]) -> Tensor:
    """float32 numbers of these bits."""
    return engine.frombuffer(bytearray(struct.pack(f"={len(bits)}I", *bits)), dtype=engine.float32)


def rounded(bits: int) -> int:
    """A float32 as bfloat16: the nearer of the two beside it, of two as near the even one."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40
    below, rest = divmod(bits, 1 << 16)
    return below + (rest > 1 << 15 or (rest == 1 << 15 and below % 2 == 1))


# -- rounding --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("isa")
def test_every_number_widens_exactly_and_comes_back() -> None:
    every = list(range(1 << 16))
    x = from_bits(every)
    wide = x.float()
    assert bytes(wide.memoryview()) == struct.pack(f"={1 << 16}I", *(b << 16 for b in every))
    back = bits_of(wide.bfloat16())
    quiet = [b | 0x40 if b & 0x7FFF > 0x7F80 else b for b in every]
    assert back == quiet
    assert bits_of(x.clone()) == every  # bits, not numbers, are copied


@pytest.mark.usefixtures("isa")
def test_rounding_is_to_nearest_with_ties_to_even() -> None:
    rng = random.Random(0)
    edges = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    bits = [(rng.getrandbits(16) << 16) | low for low in edges for _ in range(300)]
    bits += [rng.getrandbits(32) for _ in range(3000)]
    bits += [0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0x7F800001, 0xFFC00000, 0x00000001, 0x80008000]
    assert bits_of(floats(bits).bfloat16()) == [rounded(b) for b in bits]


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
def test_other_types_go_through_float32(dtype: Any) -> None:
    numbers = [0, 1, 3, 100, 255] + ([] if dtype in (engine.uint8, engine.bool_) else [-7, 65793])
    x = engine.tensor(numbers, dtype=engine.int64).to(dtype)
    half = x.bfloat16()
    assert bits_of(half) == bits_of(x.float().bfloat16())
    assert half.to(dtype).tolist() == half.float().to(dtype).tolist()
    odd = engine.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 300.7, -2.5], dtype=HALF)
    assert odd.to(engine.int32).tolist() == odd.float().to(engine.int32).tolist()
    assert odd.to(engine.bool_).tolist() == [False, False, True, True, True, True, True]


def test_views_without_order_and_without_elements_are_copied_and_rounded() -> None:
    x = engine.arange(60.0).reshape(3, 4, 5) / 7
    half = x.bfloat16()
    turned = half.permute(2, 0, 1)[::2, 1:]
    assert bits_of(turned.float().bfloat16()) == bits_of(turned)
    assert turned.float().tolist() == x.permute(2, 0, 1)[::2, 1:].bfloat16().tolist()
    assert half[:, :0].float().shape == (3, 0, 5)
    assert (half[:, :0] + 1).shape == (3, 0, 5)
    wide = half[0, 0].expand(2, 5)
    assert (wide + wide).tolist() == (wide.float() + wide.float()).bfloat16().tolist()


def test_fill_and_numbers_are_rounded() -> None:
    assert engine.full((3,), 1 / 3, dtype=HALF).tolist() == [0.333984375] * 3
    assert engine.tensor([1 / 3, 2], dtype=HALF).tolist() == [0.333984375, 2.0]
    assert engine.tensor(1 / 3, dtype=HALF).item() == 0.333984375


# -- types of results ------------------------------------------------------------------------------


def test_bfloat16_is_promoted_as_in_torch() -> None:
    x = engine.ones(2, dtype=HALF)
    wanted = {engine.float32: engine.float32, engine.float64: engine.float64}
    for dtype in (engine.float32, *OTHERS, HALF):
        y = engine.ones(2, dtype=dtype)
        assert (x + y).dtype is (y * x).dtype is wanted.get(dtype, HALF)
    assert (x + 1).dtype is (2.5 * x).dtype is (x / 3).dtype is HALF
    assert (x + engine.tensor(1.0, dtype=engine.float64)).dtype is HALF
    assert (engine.ones(2, dtype=engine.int64) + engine.tensor(1.0, dtype=HALF)).dtype is HALF
    assert (x > 0.5).dtype is engine.bool_
    assert engine.where(x > 2, 0.0, x).dtype is HALF


def test_numbers_beside_bfloat16_are_not_rounded() -> None:
    x = engine.tensor([3.0, 100.0, 1e-3], dtype=HALF).requires_grad_()
    for one, other in (
        (x * 0.1, x.float() * 0.1),
        (1.003 - x, 1.003 - x.float()),
        (x / 0.3, x.float() / 0.3),
        (x**0.3, x.float() ** 0.3),
    ):
        assert one.dtype is HALF
        assert one.tolist() == other.bfloat16().tolist()
    (x * 0.1).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == engine.full((3,), 0.1).bfloat16().tolist()


def test_what_needs_a_letter_for_the_type_says_what_to_do() -> None:
    x = engine.ones(2, dtype=HALF)
    for use in (lambda: x.numpy(), lambda: x.__array_interface__, lambda: x.__buffer__(0)):
        with pytest.raises(DTypeError, match=r"no bfloat16 in NumPy; use x\.float\(\)"):
            use()
    assert repr(x) == "tensor([1., 1.], dtype=gradcli.bfloat16)"


def test_a_dlpack_capsule_of_bfloat16_comes_back() -> None:
    x = engine.arange(6.0).reshape(2, 3).bfloat16()
    y = engine.from_dlpack(x.t())
    assert y.dtype is HALF
    x[0, 1] = 20.0
    assert y.tolist() == [[0, 3], [20, 4], [2, 5]]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 3.3), (-2, -1), (-1, 0), (-7.1, -0.3)])
def test_what_is_drawn_stays_below_the_upper_end(low: float, high: float) -> None:
    drawn = engine.empty(40_000, dtype=HALF).uniform_(low, high)
    nearest = drawn.float().max().item()
    assert low <= drawn.float().min().item()
    assert high - abs(high) * 2 * UNIT - 1e-4 <= nearest < high
    (below,) = bits_of(engine.tensor([nearest], dtype=HALF))
    above = from_bits([below + 1 if nearest > 0 else below - 1]).item()
    assert above >= high or nearest == 0 or high == 0
    if (low, high) == (0, 1):
        assert engine.rand(40_000, dtype=HALF).float().max().item() == 1 - UNIT


def test_a_model_in_bfloat16_trains_with_every_optimizer() -> None:
    for make in (optim.SGD, optim.Adam, optim.RMSprop, optim.Lion, optim.NAdam):
        model = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
        optimizer = make(model.bfloat16().parameters(), lr=0.1)
        x, target, losses = engine.randn(16, 5, dtype=HALF), engine.arange(16) % 3, []
        for _ in range(12):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optim.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            losses.append(loss.item())
        assert {p.dtype for p in model.parameters()} == {HALF}
        assert min(losses) < losses[0]


# -- every op --------------------------------------------------------------------------------------

# Their values are rounded in between, as torch's are: a mean of rounded losses, a quotient of
# rounded sums.
ROUNDED_TWICE = {
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "scatter_reduce",
}
# What they are made of is rounded, and cancels, or is multiplied once more at each step.
WIDER = {
    "cross_entropy": 32,  # of the class weights
    "rnn_steps": 24,
    "scaled_dot_product_attention": 8,
    "tanhshrink": 16,
}
# Rounding decides what is drawn, or whether there is a gradient; or nothing is computed.
UNLIKE = {"cosine_embedding_loss", "nll_loss", "multinomial", "empty_like", "new_empty"}
ALWAYS = {"bincount", "float"}  # of a type of their own, whatever goes in
FIXED = {"index", "sign", "bool", "none"}  # inputs of a type of their own
CASES = [
    pytest.param(op, sample, id=f"{op.name}{sample}")
    for op in every_op()
    for sample in op.samples
    if "dtype" not in sample.options and {one.kind for one in sample.inputs} - FIXED
]


def halves(sample: Sample) -> list[Tensor | None]:
    return gradcheck.make_inputs(sample, dtype=HALF)


def values_and_gradients(
    op: Row, sample: Sample, inputs: list[Tensor | None]
) -> tuple[list[Tensor], list[Tensor | None]]:
    inputs = [None if x is None else x.detach() for x in inputs]
    leaves = [x for x in inputs if x is not None and x.is_floating_point() and op.differentiable]
    for x in leaves:
        x.requires_grad_()
    outputs = gradcheck.call(op, sample, inputs)
    for y in outputs:
        if y.requires_grad:
            seed = engine.linspace(-1, 1, y.numel()).reshape(y.shape).bfloat16()
            y.backward(seed.to(y.dtype), retain_graph=True)
    return [y.detach() for y in outputs], [x.grad for x in leaves]


def numbers(x: Tensor) -> list[float]:
    found: list[float] = x.reshape(-1).tolist()
    return found


def assert_close(found: Tensor, wanted: Tensor, units: float) -> None:
    """Within so many roundings of the largest number."""
    assert found.shape == wanted.shape
    pairs = list(zip(numbers(found), numbers(wanted), strict=True))
    largest = max((abs(b) for _, b in pairs if math.isfinite(b)), default=0.0)
    for a, b in pairs:
        same = a == b or (math.isnan(a) and math.isnan(b))
        assert same or abs(a - b) <= units * UNIT * largest, (a, b)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_an_op_is_that_of_float32_on_the_rounded_inputs_rounded(op: Row, sample: Sample) -> None:
    engine.manual_seed(1)  # else what is drawn depends on the tests before this one
    inputs = halves(sample)
    wide = [x.float() if x is not None and x.dtype is HALF else x for x in inputs]
    values, gradients = values_and_gradients(op, sample, inputs)
    of_wide, gradients_of_wide = values_and_gradients(op, sample, wide)
    exactly = isinstance(op, Op) and op.name not in ROUNDED_TWICE
    for found, wanted in zip(values, of_wide, strict=True):
        if wanted.dtype is engine.float32 and op.name not in ALWAYS:
            assert found.dtype is HALF
            wanted = wanted.bfloat16()
        if op.name not in UNLIKE:
            assert_close(found, wanted, 0 if exactly else WIDER.get(op.name, 4))
    for grad, of_x in zip(gradients, gradients_of_wide, strict=True):
        assert (grad is None) is (of_x is None)
        if grad is not None and of_x is not None:
            assert grad.dtype is HALF
            if op.name not in UNLIKE:
                assert_close(grad, of_x, WIDER.get(op.name, 6))


def test_an_op_that_reads_its_output_is_widened_with_it() -> None:
    grad = engine.tensor([0.5, -1.0, 2.0], dtype=HALF)
    hyper = engine.tensor([0.25, 1.0], dtype=engine.float64)
    weight = engine.tensor([1.0, 2.0, 3.0], dtype=HALF)
    run("sgd_step", grad.array, hyper.array, weight.array, options=(0.0,))
    assert weight.tolist() == [0.875, 2.25, 2.5]
    run("scale_by", engine.tensor([0.5], dtype=engine.float64).array, weight.array)
    assert weight.tolist() == [0.4375, 1.125, 1.25]


def test_results_in_memory_in_another_order_and_with_gaps_are_written_in_place() -> None:
    x = engine.arange(12.0).reshape(3, 4).bfloat16()
    whole = Tensor(full((4, 7), 9.0, HALF))
    part = whole.array.view((3, 4), (1, 7))
    run("mul", x.array, x.array, part)
    assert Tensor(part).tolist() == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81, 100, 121]]
    assert whole[:, 3:].tolist() == [[9.0] * 4] * 4


def test_a_kernel_that_refuses_says_so_in_its_own_words() -> None:
    with pytest.raises(DTypeError, match="bitwise_and: does not take float32"):
        run("bitwise_and", *(empty((2,), HALF) for _ in range(3)))
