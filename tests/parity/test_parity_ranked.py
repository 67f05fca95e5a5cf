"""Medians, running extremes, unique elements and tensors made from nothing, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import both_ways, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.errors import OptionError, ShapeError  # noqa: E402

pytestmark = pytest.mark.parity

Call = Callable[[Any, Any], Any]

CASES: list[tuple[str, tuple[int, ...], Call]] = [
    ("median", (3, 5), lambda lib, x: lib.median(x[0])),
    ("median", (4, 3), lambda lib, x: x[0].median()),
    ("median", (3, 5), lambda lib, x: x[0].median(1)[0]),
    ("median", (4, 3), lambda lib, x: lib.median(x[0], 0, keepdim=True).values),
    ("nanmedian", (4, 3), lambda lib, x: x[0].nanmedian()),
    ("nanmedian", (4, 3), lambda lib, x: x[0].nanmedian(0)[0]),
    ("cummax", (3, 7), lambda lib, x: lib.cummax(x[0], 1).values),
    ("cummax", (9, 2), lambda lib, x: x[0].cummax(0)[0]),
    ("cummin", (3, 7), lambda lib, x: lib.cummin(x[0], -1)[0]),
    ("cummax", (0, 3), lambda lib, x: x[0].cummax(1)[0]),
    ("nansum", (3, 5), lambda lib, x: lib.nansum(x[0], 1)),
    ("nansum", (3, 5), lambda lib, x: x[0].nansum()),
    ("nanmean", (3, 5), lambda lib, x: lib.nanmean(x[0], 0, True)),
    ("aminmax", (3, 5), lambda lib, x: tuple(lib.aminmax(x[0], dim=1))),
]


@pytest.mark.parametrize(("name", "shape", "call"), CASES)
def test_values_and_gradients_are_torch_s(
    agree: Any, name: str, shape: tuple[int, ...], call: Call
) -> None:
    both_ways(agree, name, call, [randn(*shape)])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64], ids=str)
def test_places_and_ties_are_torch_s(agree: Any, dtype: Any) -> None:
    x = torch.tensor([[2, 1, 2, 3, 3, 0], [5, 5, 4, 4, 5, 6]]).to(dtype)
    for name in ("cummax", "cummin"):
        for found, wanted in zip(getattr(ours(x), name)(1), getattr(x, name)(1), strict=True):
            agree(name, found, wanted)
    agree("median", ours(x).median(), x.median())
    agree("median", ours(x).median(1)[0], x.median(1)[0])


def test_nan_is_torch_s(agree: Any) -> None:
    nan = float("nan")
    x = torch.tensor([[1.0, nan, 3.0, 0.0], [4.0, 2.0, nan, nan], [nan] * 4])
    for name in ("cummax", "cummin"):
        for found, wanted in zip(getattr(ours(x), name)(1), getattr(x, name)(1), strict=True):
            agree(name, found, wanted)
    for name in ("median", "nanmedian"):
        agree(name, getattr(ours(x), name)(), getattr(x, name)())
        agree(name, getattr(ours(x), name)(1)[0], getattr(x, name)(1)[0])
    agree("nansum", ours(x).nansum(1), x.nansum(1))
    agree("nanmean", ours(x).nanmean(1), x.nanmean(1))


def test_the_gradient_of_a_median_of_equals_is_torch_s(agree: Any) -> None:
    x = torch.tensor([2.0, 1.0, 2.0, 3.0, 2.0], requires_grad=True)
    own = ours(x, requires_grad=True)
    x.median().backward()
    own.median().backward()
    agree("median", own.grad, x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(4, 5), (7,), (), (0, 3)])
def test_unique_elements_are_torch_s(agree: Any, shape: tuple[int, ...], dtype: Any) -> None:
    x = (randn(*shape) * 2).abs().floor().to(dtype)
    agree("unique", engine.unique(ours(x)), torch.unique(x))
    calls = ("unique", "unique_consecutive")
    for name in calls:
        wanted = getattr(torch, name)(x, return_inverse=True, return_counts=True)
        found = getattr(engine, name)(ours(x), return_inverse=True, return_counts=True)
        for a, b in zip(found, wanted, strict=True):
            agree(name, a, b)


def test_tensors_are_made_as_in_torch(agree: Any) -> None:
    x = torch.zeros(2, dtype=torch.float64)
    own = ours(x)
    agree("Tensor.new_zeros", own.new_zeros(2, 3), x.new_zeros(2, 3))
    agree("Tensor.new_ones", own.new_ones((3,)), x.new_ones((3,)))
    agree("Tensor.new_full", own.new_full((2, 1), 2.5), x.new_full((2, 1), 2.5))
    agree("Tensor.new_tensor", own.new_tensor([1, 2]), torch.tensor([1, 2], dtype=x.dtype))
    assert own.new_empty(2, 0).shape == (2, 0)
    for a in ((0, 2, 5), (-1, 1, 4, 2.0), (3, 3, 1), (0, 1, 0)):
        agree("logspace", engine.logspace(*a), torch.logspace(*a))
    for name in ("tril_indices", "triu_indices"):
        for a in ((3, 4), (4, 2, 1), (3, 3, -1), (2, 5, 3), (0, 3)):
            agree(name, getattr(engine, name)(*a), getattr(torch, name)(*a))


def test_draws_have_the_shares_that_were_asked_for() -> None:
    engine.manual_seed(3)
    weights = engine.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 2.0]])
    found = weights.multinomial(4000, replacement=True)
    shares = [[(found[i] == k).float().mean().item() for k in range(3)] for i in (0, 1)]
    for got, wanted in zip(shares, ((0.25, 0, 0.75), (0, 0.5, 0.5)), strict=True):
        assert got == pytest.approx(wanted, abs=0.035) and 0.0 in got
    both = weights.multinomial(2)
    assert {frozenset(row) for row in both.tolist()} == {frozenset({0, 2}), frozenset({1, 2})}
    many = engine.tensor([1.0, 3.0]).expand(4000, 2).contiguous().multinomial(1)
    assert many.float().mean().item() == pytest.approx(0.75, abs=0.035)
    chances = engine.full((4000,), 0.25)
    assert chances.bernoulli().mean().item() == pytest.approx(0.25, abs=0.035)
    assert engine.zeros(4000, dtype=engine.int64).bernoulli_(0.25).sum().item() in range(860, 1140)
    wide = engine.normal(engine.tensor([5.0, -5.0]).expand(4000, 2), engine.tensor([1.0, 3.0]))
    assert wide.mean(0).tolist() == pytest.approx([5.0, -5.0], abs=0.25)
    assert wide.std(0).tolist() == pytest.approx([1.0, 3.0], rel=0.1)
    assert engine.normal(2.0, 0.0, (3,)).tolist() == [2.0, 2.0, 2.0]
    low = engine.randint_like(chances, 2, 4)
    assert low.dtype is engine.float32 and set(low.tolist()) == {2.0, 3.0}


def test_what_cannot_be_drawn_is_refused() -> None:
    weights = engine.tensor([1.0, 0.0, 3.0])
    with pytest.raises(OptionError, match="fewer than 3 weights above 0"):
        weights.multinomial(3)
    with pytest.raises(OptionError, match="finite and not negative"):
        (-weights).multinomial(1)
    with pytest.raises(OptionError, match="cannot draw 4"):
        weights.multinomial(4)
    with pytest.raises(ShapeError, match="1 or 2 dimensions"):
        weights.reshape(1, 1, 3).multinomial(1)
    with pytest.raises(ShapeError, match="has no elements"):
        engine.zeros(2, 0).median(1)
