"""What is special about matrix products and windows: bits, views, large sizes, torch's edges."""

from __future__ import annotations

import math
from typing import Any

import pytest
from short_ways import close_short_ways

from gradcli import engine
from gradcli.engine import array
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import cpu
from gradcli.errors import GradcliError, OptionError, ShapeError


def normal(*shape: int, dtype: Any = engine.float32) -> Any:
    count = math.prod(shape)
    numbers = [math.sin(1.7 * i) + math.cos(0.31 * i * i) for i in range(count)]
    return engine.tensor(numbers, dtype=dtype).reshape(shape)


def bits(x: Any) -> bytes:
    return bytes(x.contiguous().memoryview())


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (13, 17, 33), (25, 64, 300), (65, 31, 513)])
def test_an_element_has_the_same_bits_alone_and_within_a_product(
    isa: str, shape: tuple[int, int, int]
) -> None:
    before = cpu.isa()
    if not cpu.set_isa(isa):
        pytest.skip(f"this machine has no {isa}")
    m, n, k = shape
    for dtype in (engine.float32, engine.float64):
        a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
        whole = a.matmul(b)
        for i, j in ((0, 0), (m - 1, n - 1), (m // 2, n // 3)):
            alone = a[i : i + 1].matmul(b[:, j : j + 1])
            assert bits(alone) == bits(whole[i : i + 1, j : j + 1])
    cpu.set_isa(before)


def turned(x: Any) -> Any:
    """The same numbers, in memory the other way round."""
    return x.permute((0, 2, 1)).contiguous().permute((0, 2, 1))


# Around the limits where a product is cut, packed in a phase of its own, or done transposed.
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
@pytest.mark.parametrize(
    "shape",
    [
        *((1, 1, 300, 9), (1, 77, 40, 1), (1, 5, 3, 4), (2, 128, 260, 10), (1, 16, 600, 130)),
        *((1, 250, 257, 33), (1, 131, 130, 129), (3, 90, 100, 140), (1, 30, 70, 1100)),
    ],
)
def test_how_matrices_lie_in_memory_does_not_show_in_the_bits(
    isa: str, shape: tuple[int, int, int, int]
) -> None:
    before = cpu.isa()
    if not cpu.set_isa(isa):
        pytest.skip(f"this machine has no {isa}")
    batch, m, k, n = shape
    for dtype in (engine.float32, engine.float64):
        draw = engine.Generator(7)
        a = engine.randn(batch, m, k, dtype=dtype, generator=draw)
        b = engine.randn(batch, k, n, dtype=dtype, generator=draw)
        gaps = engine.zeros((batch, k, 2 * n), dtype=dtype)
        gaps[:, :, ::2] = b
        wanted = bits(a.matmul(b))
        for left in (a, turned(a)):
            for right in (b, turned(b), gaps[:, :, ::2]):
                assert bits(left.matmul(right)) == wanted
        rows = [bits(a[:, i : i + 1].matmul(turned(b))) for i in (0, m // 2, m - 1)]
        whole = a.matmul(b)
        assert rows == [bits(whole[:, i : i + 1]) for i in (0, m // 2, m - 1)]
        same = b[:1].expand((batch, k, n))
        assert bits(a.matmul(same)[-1:]) == bits(a[-1:].matmul(b[:1]))
    cpu.set_isa(before)


def test_a_batch_has_the_bits_of_its_matrices() -> None:
    a, b = normal(5, 9, 40), normal(40, 11)
    together = a.matmul(b)
    for i in range(5):
        assert bits(together[i]) == bits(a[i].matmul(b))


def test_views_are_multiplied_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = normal(6, 5, dtype=engine.float64), normal(7, 5, dtype=engine.float64)
    many = normal(3, 1, 6, 5, dtype=engine.float64).expand((3, 4, 6, 5))[:, 0]
    wanted = bits(a.matmul(b.permute((1, 0)).contiguous()))

    def no_copies(kernel: str, *arrays: Array, **named: Any) -> None:
        assert kernel != "copy"
        run(kernel, *arrays, **named)

    close_short_ways(monkeypatch)
    monkeypatch.setattr(array, "run", no_copies)
    product = a.matmul(b.permute((1, 0)))
    many.matmul(b[::2].permute((1, 0)))
    monkeypatch.undo()
    assert bits(product) == wanted


def test_zero_times_nan_and_infinity_is_nan() -> None:
    zero = engine.zeros((3, 8))
    for value in (math.nan, math.inf):
        y = zero.matmul(engine.full((8, 40), value))
        assert all(math.isnan(v) for v in y.reshape(-1).tolist())


def test_mm_and_bmm_do_not_broadcast() -> None:
    a, b = normal(3, 4), normal(4, 2)
    assert bits(engine.mm(a, b)) == bits(a.matmul(b))
    c, d = normal(2, 3, 4), normal(2, 4, 2)
    assert bits(engine.bmm(c, d)) == bits(c.matmul(d))
    with pytest.raises(ShapeError, match="mm: both need 2 dimensions"):
        engine.mm(c, d)
    with pytest.raises(ShapeError, match="bmm: the batches"):
        engine.bmm(c, normal(1, 4, 2))
    with pytest.raises(ShapeError, match="bmm: both need 3 dimensions"):
        engine.bmm(a, b)


def test_max_pool2d_returns_indices_when_asked() -> None:
    x = engine.tensor([[[1.0, 5.0, 5.0], [2.0, 5.0, 0.0], [7.0, 7.0, 1.0]]])
    y, where = engine.max_pool2d(x, 2, stride=1, return_indices=True)
    assert y.tolist() == [[[5.0, 5.0], [7.0, 7.0]]]
    assert where.tolist() == [[[1, 1], [6, 7]]]
    assert bits(engine.max_pool2d(x, 2, stride=1)) == bits(y)


def test_the_gradient_of_a_tie_goes_to_the_first() -> None:
    x = engine.tensor([[[3.0, 3.0], [3.0, 3.0]]], requires_grad=True)
    engine.max_pool2d(x, 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]


def test_max_pool2d_of_padding_alone_is_minus_infinity_without_gradient() -> None:
    x = engine.tensor([[[4.0]]], requires_grad=True)
    y = engine.max_pool2d(x, 2, stride=1, padding=1, dilation=2)
    assert y.tolist() == [[[-math.inf]]]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[0.0]]]


def test_an_index_outside_its_plane_is_refused() -> None:
    grad = engine.ones((1, 1, 2)).array
    where = engine.tensor([[[0, 9]]], dtype=engine.int64).array
    out: Array = empty((1, 2, 2), engine.float32)
    with pytest.raises(GradcliError, match="9"):
        run("max_pool2d_backward", grad, where, out, sizes=(2, 2, 2, 2, 0, 0, 1, 1))


def test_options_of_windows_must_be_whole_numbers() -> None:
    x = normal(1, 1, 4, 4)
    for value in (1.5, True, "2", (1, 2, 3), (), 1 << 40):
        with pytest.raises(OptionError, match="kernel_size must be"):
            engine.max_pool2d(x, value)


@pytest.mark.parametrize("threads", [1, 3])
def test_weight_gradients_of_many_images_equal_the_sum_over_single_ones(threads: int) -> None:
    before = cpu.threads()
    cpu.set_threads(threads)
    x, weight = normal(37, 2, 6, 5, dtype=engine.float64), normal(4, 2, 3, 3, dtype=engine.float64)
    weight.requires_grad_()
    engine.conv2d(x, weight, padding=1).sum().backward()
    assert weight.grad is not None
    together = weight.grad.reshape(-1).tolist()
    weight.grad = None
    for i in range(37):
        engine.conv2d(x[i : i + 1], weight, padding=1).sum().backward()
    for a, b in zip(together, weight.grad.reshape(-1).tolist(), strict=True):
        assert abs(a - b) <= 1e-10 * max(1.0, abs(b))
    cpu.set_threads(before)
