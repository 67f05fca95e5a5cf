"""Tensors that C makes: contiguous, in memory of their own, given back when a call is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from short_ways import close_short_ways

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import ffi, lib
from gradcli.engine.op import declared_ops
from gradcli.engine.ops.elementwise.family import BinaryOp, UnaryOp
from gradcli.errors import DTypeError, RangeError, ShapeError

ADD = KERNELS["add"]


def test_a_fresh_tensor_is_contiguous_and_given_back(allocated: Callable[[], int]) -> None:
    before = allocated()
    made = lib.gc_tensor_new(1, 3, (2, 0, 3))
    assert tuple(made.shape[0:3]) == (2, 0, 3)
    assert tuple(made.stride[0:3]) == (3, 3, 1)
    assert (made.ndim, made.dtype, made.nbytes, made.offset) == (3, 1, 0, 0)
    lib.gc_tensor_free(made)
    made = lib.gc_tensor_new(0, 2, (5, 7))
    assert allocated() == before + 4 * 35
    assert int(ffi.cast("intptr_t", made.data)) % 64 == 0
    assert tuple(made.stride[0:2]) == (7, 1)
    lib.gc_tensor_free(made)
    assert allocated() == before


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        (-1, (2,)),
        (7, (2,)),
        (0, (2,) * 9),
        (0, (-1, 2)),
        (1, (2**61,)),  # its bytes have no number
        (0, (2**32, 2**32)),
        (0, (2**62,)),  # no memory
    ],
)
def test_what_is_no_tensor_is_not_made(
    dtype: int, shape: tuple[int, ...], allocated: Callable[[], int]
) -> None:
    before = allocated()
    assert not lib.gc_tensor_new(dtype, len(shape), shape)
    assert allocated() == before


def test_a_refused_call_leaves_no_fresh_tensor(allocated: Callable[[], int]) -> None:
    inputs = [engine.ones(*shape).array.descriptor for shape in ((3, 4), (3, 5))]
    before = allocated()
    assert not lib.gc_run_new(ADD, inputs, 2, (), 0, (), 0, 0, 2, (3, 4))
    assert lib.gc_last_error().status == lib.GC_BAD_SHAPE
    for count in (-1, 8, 9):  # with the fresh one they are too many
        assert not lib.gc_run_new(ADD, inputs, count, (), 0, (), 0, 0, 2, (3, 4))
        assert lib.gc_last_error().status == lib.GC_BAD_CALL
    assert not lib.gc_run_new(len(KERNELS), inputs, 2, (), 0, (), 0, 0, 2, (3, 4))
    assert allocated() == before


_MAPPED = [
    op for op in declared_ops() if isinstance(op, UnaryOp) or (isinstance(op, BinaryOp) and op.maps)
]


@pytest.mark.parametrize("op", _MAPPED, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64])
def test_the_shortest_way_gives_what_the_others_give(
    op: UnaryOp | BinaryOp, dtype: engine.DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[engine.Tensor | float, ...]] = []
    for shape in ((), (1,), (7, 5), (2, 3, 40), (0, 3), (70_001,)):
        x, y = (engine.rand(*shape, dtype=dtype) + 0.25 for _ in range(2))
        calls += [(x, y), (x, 0.75), (x, 3), (x, y.sum())] if isinstance(op, BinaryOp) else [(x,)]
    square = engine.rand(6, 6, dtype=dtype)
    if isinstance(op, BinaryOp):
        calls += [(square.t(), square), (square[0], square[:, 1]), (square, square[1])]
        calls += [(square, square[:, 1:2]), (square[1], square), (square[:, 2:3], square[2:3])]
        calls += [(engine.zeros(0, 6, dtype=dtype), square[0]), (square[:1], square[:, :1])]
    short = [op(*call) for call in calls]
    close_short_ways(monkeypatch)
    for call, y in zip(calls, short, strict=True):
        other = op(*call)
        assert (other.shape, other.stride(), other.dtype) == (y.shape, y.stride(), y.dtype)
        assert bytes(other.memoryview()) == bytes(y.memoryview())


def test_the_shortest_way_is_closed_to_what_must_be_seen() -> None:
    """Gradients, observers and captured steps see each call."""
    x = engine.ones(3, requires_grad=True)
    assert (x + x).requires_grad
    assert (x * 2.0).exp().requires_grad
    step = engine.capture(lambda a: (a + a).exp())
    for number in (1.0, 2.0, 3.0):
        a = engine.full((3,), number)
        assert step(a).tolist() == (a + a).exp().tolist()
    assert step.fallback_reason == ""


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 4), (17, 40, 33), (0, 3, 2), (2, 0, 3)])
def test_products_have_one_answer_by_either_way(
    sizes: tuple[int, int, int], dtype: engine.DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = sizes
    a, b = engine.randn(m, k, dtype=dtype), engine.randn(k, n, dtype=dtype)
    row, strided = engine.randn(k, dtype=dtype), engine.randn(k, 3, dtype=dtype)[:, 1]
    pairs = [(a, b), (row, b), (a, row), (row, row), (b.t(), a.t()), (a, b.t().contiguous().t())]
    pairs += [(strided, b), (a, strided), (strided, row)]
    short = [x @ y for x, y in pairs]
    weight, bias = engine.randn(n, k, dtype=dtype), engine.randn(n, dtype=dtype)
    short += [nn.functional.linear(a, weight, bias), nn.functional.linear(a, weight)]
    close_short_ways(monkeypatch)
    other = [x @ y for x, y in pairs]
    other += [nn.functional.linear(a, weight, bias), nn.functional.linear(a, weight)]
    for x, y in zip(short, other, strict=True):
        assert (x.shape, x.stride()) == (y.shape, y.stride())
        assert bytes(x.memoryview()) == bytes(y.memoryview())


_KINDS = [engine.float32, engine.float64, engine.int64, engine.int32, engine.uint8, engine.bool_]


@pytest.mark.parametrize("dtype", [*_KINDS, engine.bfloat16], ids=str)
def test_places_pick_the_same_by_either_way(
    dtype: engine.DType, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = (engine.rand(7, 5, 3, generator=engine.Generator(1)) * 9).to(dtype)
    far = (engine.rand(400, 90, generator=engine.Generator(1)) * 9).to(dtype)
    a, b, c = (engine.randint(-n, n, (20_011,), generator=engine.Generator(n)) for n in (7, 5, 3))
    none, one = engine.zeros(0, dtype=engine.int64), engine.tensor([-1])
    calls = [(x, (a,)), (x, (a, b)), (x, (a, b, c)), (x, (none, none)), (x, (one, one, one))]
    calls += [(far, (a * 57, b * 18)), (x.transpose(0, 1), (b, a)), (x[:, :, 1:], (a, b, one))]
    calls += [(x[:, :0], (a,)), (x[:0], (none,)), (x, (a, b[::1], c.to(engine.int32)))]
    calls += [(x, (a[::2], b[::2])), (x, (a.reshape(-1, 1), one)), (x, (one[0], b))]
    short = [x[places] for x, places in calls]
    close_short_ways(monkeypatch)
    for (x, places), y in zip(calls, short, strict=True):
        other = x[places]
        assert (other.shape, other.stride(), other.dtype) == (y.shape, y.stride(), y.dtype)
        assert other.tolist() == y.tolist()


def test_places_out_of_range_are_refused_by_name(allocated: Callable[[], int]) -> None:
    x = engine.zeros(7, 5)
    good, bad = engine.tensor([6, -7, 0]), engine.tensor([4, 0, -6])
    before = allocated()
    for source, places, said in [
        (x, (good, bad), r"index -6 at position 2 is outside -5\.\.4 of dimension 1"),
        (x[:0], (bad,), r"index 4 at position 0 is outside 0\.\.-1 of dimension 0"),
        (x, (good, good, good), "3 indices for 2 dimension"),
    ]:
        with pytest.raises(RangeError, match=said):
            source[places]
    assert allocated() == before


def test_products_that_do_not_fit_are_refused_by_name() -> None:
    for a, b in (((3, 5), (4, 5)), ((3, 5), (4,)), ((5,), (4, 5)), ((), (3,)), ((3,), ())):
        with pytest.raises(ShapeError, match=r"^matmul: "):
            engine.zeros(a) @ engine.zeros(b)
    with pytest.raises(DTypeError, match=r"^matmul: other is float64 and x float32"):
        engine.zeros(2, 2) @ engine.zeros(2, 2, dtype=engine.float64)
