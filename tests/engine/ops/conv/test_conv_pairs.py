"""Convolutions of bfloat16 where the processor multiplies pairs: right, always the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional as F
from gradcli.errors import GradcliError

HALF = engine.bfloat16
# images (N, C, H, W), filters (K, C / groups, rows, columns), and options
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 6, 7), (5, 3, 3, 3), {}),
    ((3, 1, 9, 5), (4, 1, 2, 3), {"stride": 2, "padding": 1}),
    ((1, 6, 7, 5), (9, 2, 3, 1), {"stride": (2, 1), "padding": (0, 2), "groups": 3}),
    ((5, 2, 8, 16), (2, 2, 3, 2), {"dilation": (2, 3), "padding": "same"}),
    ((3, 17, 16, 32), (33, 17, 3, 3), {"padding": 1}),
    ((2, 4, 16, 32), (13, 4, 3, 3), {"stride": 2, "padding": 1}),
    ((3, 2, 7, 9), (4, 2, 4, 4), {"stride": 3, "padding": 2}),
    ((19, 33, 8, 8), (35, 33, 3, 3), {"padding": 1}),  # narrow pictures, several at a time
    ((18, 64, 4, 4), (64, 64, 3, 3), {"padding": 1}),
    ((7, 5, 3, 3), (4, 5, 1, 1), {}),
]


@pytest.fixture(autouse=True)
def pairs() -> Iterator[None]:
    before, threads = cpu.isa(), cpu.threads()
    if not cpu.set_isa("avx512bf16"):
        pytest.skip("this machine has no avx512bf16")
    yield
    cpu.set_isa(before)
    cpu.set_threads(threads)


def drawn(*size: int, seed: int = 1) -> Tensor:
    return engine.randn(*size, generator=engine.Generator(seed)).to(HALF)


def bits(tensors: list[Tensor]) -> list[bytes]:
    return [bytes(x.contiguous().memoryview()) for x in tensors]


def gradients(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    change: Callable[[Tensor], Tensor],
    **options: Any,
) -> list[Tensor]:
    """The maps, and the gradients of images and filters, of numbers that `change` gives."""
    x, weight = change(x).requires_grad_(), change(weight).requires_grad_()
    y = F.conv2d(x, weight, None if bias is None else change(bias), **options)
    y.backward(change(drawn(*y.shape, seed=4)))
    assert x.grad is not None and weight.grad is not None
    return [y.detach(), x.grad, weight.grad]


def assert_near(made: list[Tensor], exact: list[Tensor], sizes: list[Tensor]) -> None:
    """Within the rounding of float32 sums, and of each result to 8 bits of mantissa."""
    for one, wanted, size in zip(made, exact, sizes, strict=True):
        assert one.dtype is HALF and one.shape == wanted.shape
        bound = wanted.abs() * 2.0**-8 + size * 2.0**-14 + 1e-30
        assert bool(((one.to(engine.float64) - wanted).abs() <= bound).all())


@pytest.mark.parametrize(("images", "filters", "options"), SHAPES)
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions_of_any_shape_are_right(
    images: tuple[int, ...], filters: tuple[int, ...], options: dict[str, Any], biased: bool
) -> None:
    x, weight = drawn(*images), drawn(*filters, seed=2)
    bias = drawn(filters[0], seed=3) if biased else None
    made = gradients(x, weight, bias, lambda t: t.detach().clone(), **options)
    exact = gradients(x, weight, bias, lambda t: t.to(engine.float64), **options)
    sizes = gradients(x, weight, bias, lambda t: t.to(engine.float64).abs(), **options)
    assert_near(made, exact, sizes)


@pytest.mark.parametrize(("images", "filters", "options"), SHAPES[3:9])
def test_threads_do_not_show_in_the_bits(
    images: tuple[int, ...], filters: tuple[int, ...], options: dict[str, Any]
) -> None:
    found = []
    for number in (1, 2, 3):
        cpu.set_threads(number)
        x, weight = drawn(*images), drawn(*filters, seed=2)
        found.append(bits(gradients(x, weight, None, lambda t: t.detach().clone(), **options)))
    assert found[0] == found[1] == found[2]


def test_an_image_has_the_same_bits_alone_and_in_a_batch() -> None:
    x, weight = drawn(4, 5, 16, 16), drawn(6, 5, 3, 3, seed=2)
    whole = F.conv2d(x, weight, padding=1)
    assert bits([whole[2:3]]) == bits([F.conv2d(x[2:3], weight, padding=1)])


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize("channel", [0, 1, 4])
def test_what_is_not_finite_stays_where_it_is_seen(value: float, channel: int) -> None:
    x, weight = drawn(3, 5, 6, 6).abs(), drawn(7, 5, 1, 1, seed=2).abs() + 1
    x[1, channel, 2, 3] = value  # beside a number, or beside nothing
    seen = F.conv2d(x, weight).isfinite()
    assert not bool(seen[1, :, 2, 3].any())
    assert int(seen.int().sum().item()) == seen.numel() - 7


@pytest.mark.parametrize(
    ("images", "filters"),
    [((0, 2, 5, 5), (3, 2, 3, 3)), ((2, 2, 5, 5), (0, 2, 3, 3)), ((2, 0, 5, 5), (3, 0, 3, 3))],
)
def test_convolutions_of_nothing(images: tuple[int, ...], filters: tuple[int, ...]) -> None:
    made = gradients(drawn(*images), drawn(*filters, seed=2), None, lambda t: t.detach().clone())
    for one in made:
        assert one.tolist() == engine.zeros(*one.shape).tolist()


def test_strided_images_are_taken_and_wrong_ones_refused() -> None:
    x, weight = drawn(2, 7, 6, 3), drawn(4, 3, 2, 2, seed=2)
    turned = x.permute(0, 3, 1, 2)
    assert bits([F.conv2d(turned, weight)]) == bits([F.conv2d(turned.contiguous(), weight)])
    with pytest.raises(GradcliError, match="channels"):
        F.conv2d(x, weight)
    with pytest.raises(GradcliError):
        F.conv2d(turned, weight.float())


def test_other_instruction_sets_give_nearly_the_same() -> None:
    x, weight = drawn(3, 17, 9, 9), drawn(20, 17, 3, 3, seed=2)
    made = gradients(x, weight, None, lambda t: t.detach().clone(), padding=1)
    cpu.set_isa("baseline")
    other = gradients(x, weight, None, lambda t: t.detach().clone(), padding=1)
    for a, b in zip(made, other, strict=True):
        assert (a.float() - b.float()).abs().max().item() <= 2.0**-7 * a.float().abs().max().item()
