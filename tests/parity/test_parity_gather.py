"""Gather, scatter, sort and what is composed of them, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import both_ways, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity

Call = Callable[[Any, list[Any], Any], Any]  # the library, float inputs, an index


def place(shape: tuple[int, ...], below: int) -> Any:
    """Indices from a seed."""
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(3))


def once(shape: tuple[int, ...], below: int, dim: int) -> Any:
    """Indices that differ along a dimension."""
    return torch.rand(
        (*shape[:dim], below, *shape[dim + 1 :]), generator=torch.Generator().manual_seed(4)
    ).argsort(dim)[tuple(slice(n) for n in shape)]


CASES: list[tuple[str, list[tuple[int, ...]], Any, Call]] = [
    ("gather", [(5, 3)], place((4, 2), 5), lambda lib, x, i: lib.gather(x[0], 0, i)),
    ("gather", [(2, 3, 4)], place((2, 7, 1), 3), lambda lib, x, i: x[0].gather(1, i)),
    ("gather", [(4, 3)], place((0, 3), 3), lambda lib, x, i: x[0].gather(-1, i)),
    (
        "take_along_dim",
        [(5, 3)],
        place((2, 3), 5),
        lambda lib, x, i: lib.take_along_dim(x[0], i, 0),
    ),
    (
        "take_along_dim",
        [(5, 1)],
        place((5, 3), 1),
        lambda lib, x, i: lib.take_along_dim(x[0], i, 1),
    ),
    ("take_along_dim", [(5, 3)], place((9,), 15), lambda lib, x, i: lib.take_along_dim(x[0], i)),
    ("take", [(5, 3)], place((2, 4), 15) - 7, lambda lib, x, i: lib.take(x[0], i)),
    (
        "scatter",
        [(5, 3), (4, 3)],
        once((4, 2), 5, 0),
        lambda lib, x, i: lib.scatter(x[0], 0, i, x[1][:, :2]),
    ),
    ("scatter", [(5, 3)], once((4, 2), 5, 0), lambda lib, x, i: x[0].scatter(0, i, 2.5)),
    ("scatter", [(5, 3)], once((4, 2), 5, 0), lambda lib, x, i: x[0].scatter(0, i, value=-1)),
    (
        "scatter_add",
        [(5, 3), (6, 3)],
        place((6, 3), 5),
        lambda lib, x, i: x[0].scatter_add(0, i, x[1]),
    ),
    (
        "scatter_add",
        [(2, 5, 3), (2, 4, 3)],
        place((1, 4, 2), 3),
        lambda lib, x, i: lib.scatter_add(x[0], 2, i.expand(1, 4, 2), x[1][:1, :, :2]),
    ),
    *[
        (
            "scatter_reduce",
            [(5, 3), (6, 3)],
            place((6, 3), 5),
            lambda lib, x, i, r=r, s=s: x[0].scatter_reduce(0, i, x[1], r, include_self=s),
        )
        for r in ("sum", "mean", "prod", "amax", "amin")
        for s in (True, False)
    ],
    (
        "index_add",
        [(5, 3), (4, 3)],
        place((4,), 5),
        lambda lib, x, i: lib.index_add(x[0], 0, i, x[1]),
    ),
    (
        "index_add",
        [(2, 5), (2, 7)],
        place((7,), 5),
        lambda lib, x, i: x[0].index_add(1, i, x[1], alpha=-2),
    ),
    (
        "index_copy",
        [(5, 3), (4, 3)],
        once((4,), 5, 0),
        lambda lib, x, i: lib.index_copy(x[0], 0, i, x[1]),
    ),
    (
        "index_copy",
        [(2, 5), (2, 3)],
        once((3,), 5, 0),
        lambda lib, x, i: x[0].index_copy(-1, i, x[1]),
    ),
    ("index_fill", [(5, 3)], place((2,), 5), lambda lib, x, i: lib.index_fill(x[0], 0, i, 2.5)),
    ("index_fill", [(2, 5)], place((2,), 5), lambda lib, x, i: x[0].index_fill(1, i, -1)),
    ("sort", [(3, 7)], None, lambda lib, x, i: lib.sort(x[0]).values),
    ("sort", [(3, 7)], None, lambda lib, x, i: x[0].sort(0, True)[0]),
    ("sort", [(70, 2)], None, lambda lib, x, i: lib.sort(x[0], stable=True, dim=0)[0]),
    ("topk", [(3, 7)], None, lambda lib, x, i: lib.topk(x[0], 3)[0]),
    ("topk", [(30, 2)], None, lambda lib, x, i: x[0].topk(4, 0, False).values),
    ("msort", [(7, 2)], None, lambda lib, x, i: lib.msort(x[0])),
    ("kthvalue", [(3, 7)], None, lambda lib, x, i: lib.kthvalue(x[0], 3)[0]),
    ("kthvalue", [(3, 7)], None, lambda lib, x, i: lib.kthvalue(x[0], 3, 0, True)[0]),
]


@pytest.mark.parametrize(("name", "shapes", "index", "call"), CASES)
def test_values_and_gradients_are_those_of_torch(
    agree: Any, name: str, shapes: list[tuple[int, ...]], index: Any, call: Call
) -> None:
    inputs = [randn(*s, seed=i) for i, s in enumerate(shapes)]
    mine = None if index is None else ours(index)

    def either(lib: Any, x: list[Any]) -> Any:
        return call(lib, x, index if lib is torch else mine)

    both_ways(agree, name, either, inputs)


def halves(shape: tuple[int, ...]) -> Any:
    """A mask of which about one half is true."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(6)) < 0.5


MASKED: list[tuple[str, list[tuple[int, ...]], Any, Call]] = [
    ("masked_select", [(5, 3)], halves((5, 3)), lambda lib, x, m: lib.masked_select(x[0], m)),
    ("masked_select", [(5, 1)], halves((3,)), lambda lib, x, m: x[0].masked_select(m)),
    ("masked_select", [(3,)], halves((2, 4, 1)), lambda lib, x, m: x[0].masked_select(m)),
    ("masked_select", [()], halves(()), lambda lib, x, m: x[0].masked_select(m)),
    ("masked_select", [(0, 3)], halves((0, 3)), lambda lib, x, m: x[0].masked_select(m)),
    (
        "masked_scatter",
        [(5, 3), (4, 7)],
        halves((5, 3)),
        lambda lib, x, m: lib.masked_scatter(x[0], m, x[1]),
    ),
    (
        "masked_scatter",
        [(2, 5), (11,)],
        halves((5,)),
        lambda lib, x, m: x[0].masked_scatter(m, x[1]),
    ),
    ("masked_fill", [(5, 3)], halves((5, 1)), lambda lib, x, m: x[0].masked_fill(m, -2.5)),
    ("where", [(5, 3)], halves((5, 3)), lambda lib, x, m: x[0][lib.where(m)]),
]


@pytest.mark.parametrize(("name", "shapes", "mask", "call"), MASKED)
def test_masks_choose_as_in_torch(
    agree: Any, name: str, shapes: list[tuple[int, ...]], mask: Any, call: Call
) -> None:
    inputs = [randn(*s, seed=i) for i, s in enumerate(shapes)]
    mine = ours(mask)

    def either(lib: Any, x: list[Any]) -> Any:
        return call(lib, x, mask if lib is torch else mine)

    both_ways(agree, name, either, inputs)


@pytest.mark.parametrize("shape", [(4, 6), (3, 1, 5), (70, 90), (7,), (), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
def test_places_of_what_is_not_0_are_those_of_torch(
    agree: Any, shape: tuple[int, ...], dtype: Any
) -> None:
    x = (randn(*shape) * 1.5).to(torch.int64).abs().to(dtype)
    if x.ndim > 1:
        x = x.transpose(0, -1)
    mine = ours(x)
    agree("nonzero", mine.nonzero(), x.nonzero())
    agree("argwhere", engine.argwhere(mine), torch.argwhere(x))
    for found, wanted in zip(engine.where(mine), torch.where(x), strict=True):
        agree("where", found, wanted)


def test_nan_is_not_0_and_minus_0_is(agree: Any) -> None:
    x = torch.tensor([0.0, -0.0, float("nan"), 1e-300], dtype=torch.float64)
    agree("nonzero", ours(x).nonzero(), x.nonzero())


PLACES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("argsort", lambda lib, x: lib.argsort(x, dim=0)),
    ("argsort", lambda lib, x: x.argsort(-1, True)),
    ("sort", lambda lib, x: x.sort(1)[1]),
    ("topk", lambda lib, x: x.topk(2, dim=0).indices),
    ("kthvalue", lambda lib, x: x.kthvalue(2).indices),
    ("searchsorted", lambda lib, x: lib.searchsorted(x.sort(1)[0], x)),
    ("searchsorted", lambda lib, x: lib.searchsorted(x.sort(1)[0], x, right=True)),
    ("searchsorted", lambda lib, x: lib.searchsorted(x[0].sort()[0], x, side="right")),
    ("searchsorted", lambda lib, x: lib.searchsorted(x[0].sort()[0], 0.25)),
    ("bucketize", lambda lib, x: lib.bucketize(x, lib.tensor([-0.5, 0.0, 1.0]), out_int32=True)),
]


@pytest.mark.parametrize(("name", "call"), PLACES)
def test_places_are_those_of_torch(agree: Any, name: str, call: Callable[[Any, Any], Any]) -> None:
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
        whole = torch.randperm(48, generator=torch.Generator().manual_seed(5)).reshape(4, 12) - 20
        x = whole.to(dtype)
        agree(name, call(engine, ours(x)), call(torch, x))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_whole_numbers_are_joined_as_in_torch(agree: Any, dtype: Any) -> None:
    x = torch.arange(20).reshape(5, 4).to(dtype)
    index = place((7, 4), 5)
    src = torch.arange(28).reshape(7, 4).to(dtype)
    mine = ours(x), ours(index), ours(src)
    agree("scatter_add", mine[0].scatter_add(0, *mine[1:]), x.scatter_add(0, index, src))
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            found = mine[0].scatter_reduce(0, *mine[1:], reduce, include_self=include)
            wanted = x.scatter_reduce(0, index, src, reduce, include_self=include)
            agree("scatter_reduce", found, wanted)


def test_one_value_of_a_scatter_may_be_joined(agree: Any) -> None:
    x, index = randn(5, 3), place((4, 3), 5)
    for reduce in ("add", "multiply"):
        wanted = x.scatter(0, index, 2.0, reduce=reduce)
        agree("scatter", ours(x).scatter(0, ours(index), 2.0, reduce=reduce), wanted)
