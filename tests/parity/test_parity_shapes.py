"""What moves, repeats and multiplies whole tensors, compared with torch: values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import both_ways, randn  # noqa: E402

from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity

Call = Callable[[Any, Any], Any]  # the library and its tensors give a tensor, or several


MOVED: list[tuple[str, tuple[int, ...], Call]] = [
    ("flip", (3, 4, 2), lambda lib, x: lib.flip(x[0], (0, -1))),
    ("flip", (3, 4), lambda lib, x: x[0].flip(1)),
    ("flip", (0, 4), lambda lib, x: x[0].T.flip(0, 1)),
    ("fliplr", (3, 4), lambda lib, x: lib.fliplr(x[0])),
    ("flipud", (5,), lambda lib, x: lib.flipud(x[0])),
    ("roll", (3, 5), lambda lib, x: lib.roll(x[0], 2)),
    ("roll", (3, 5), lambda lib, x: lib.roll(x[0], (1, -7), (0, 1))),
    ("roll", (2, 0), lambda lib, x: lib.roll(x[0], 1, 0)),
    *[
        ("rot90", (2, 3, 4), lambda lib, x, k=k: lib.rot90(x[0], k, (0, 2)))
        for k in (-1, 0, 1, 2, 3, 5)
    ],
    ("rot90", (3, 5), lambda lib, x: lib.rot90(x[0])),
    ("expand_as", (3, 1), lambda lib, x: x[0].expand_as(lib.zeros(2, 3, 4))),
    ("broadcast_to", (1, 4), lambda lib, x: lib.broadcast_to(x[0], (2, 3, 4))),
    ("movedim", (2, 3, 4, 5), lambda lib, x: lib.movedim(x[0], (0, 2), (-1, 0))),
    ("movedim", (2, 3, 4), lambda lib, x: lib.movedim(x[0], 2, 0)),
    ("moveaxis", (2, 3, 4), lambda lib, x: lib.moveaxis(x[0], -1, 1)),
    ("swapaxes", (2, 3, 4), lambda lib, x: lib.swapaxes(x[0], 0, -1)),
    ("swapdims", (2, 3, 4), lambda lib, x: x[0].swapdims(1, 0)),
    ("unflatten", (2, 12), lambda lib, x: lib.unflatten(x[0], 1, (3, -1))),
    ("ravel", (2, 3), lambda lib, x: lib.ravel(x[0].T)),
    ("narrow", (5, 3), lambda lib, x: lib.narrow(x[0], 0, 1, 3)),
    ("narrow", (5, 3), lambda lib, x: x[0].narrow(-1, -2, 2)),
    ("select", (5, 3), lambda lib, x: lib.select(x[0], 1, -1)),
    ("tensor_split", (7, 2), lambda lib, x: lib.tensor_split(x[0], 3)),
    ("tensor_split", (7, 2), lambda lib, x: lib.tensor_split(x[0], (1, 5, 4, 9))),
    ("tensor_split", (2, 7), lambda lib, x: x[0].tensor_split([2, -1], dim=1)),
    ("repeat", (3, 1, 2), lambda lib, x: x[0].repeat(2, 1, 3)),
    ("repeat", (3, 2), lambda lib, x: x[0].T.repeat(2, 3, 1, 4)),
    ("repeat", (3,), lambda lib, x: x[0].repeat((0, 2))),
    ("tile", (3, 2), lambda lib, x: lib.tile(x[0], (2,))),
    ("tile", (3, 2), lambda lib, x: lib.tile(x[0], (2, 1, 3))),
    ("repeat_interleave", (3, 2), lambda lib, x: lib.repeat_interleave(x[0], 2)),
    ("repeat_interleave", (3, 2), lambda lib, x: lib.repeat_interleave(x[0], 3, dim=0)),
    (
        "repeat_interleave",
        (3, 2),
        lambda lib, x: lib.repeat_interleave(x[0], lib.tensor([2, 0, 1]), dim=0),
    ),
    ("diagonal", (3, 5), lambda lib, x: lib.diagonal(x[0], 1)),
    ("diagonal", (2, 3, 4), lambda lib, x: lib.diagonal(x[0], -1, 2, 1)),
    ("diag", (3, 4), lambda lib, x: lib.diag(x[0], 1)),
    ("diag", (3,), lambda lib, x: lib.diag(x[0], -2)),
    ("diag_embed", (2, 3), lambda lib, x: lib.diag_embed(x[0], 1, 0, 2)),
    ("Tensor.unfold", (2, 7), lambda lib, x: x[0].unfold(1, 3, 2)),
    ("Tensor.unfold", (6, 3), lambda lib, x: x[0].T.unfold(-1, 2, 1)),
]


@pytest.mark.parametrize(("name", "shape", "call"), MOVED)
def test_elements_end_up_where_torch_puts_them(
    agree: Any, name: str, shape: tuple[int, ...], call: Call
) -> None:
    both_ways(agree, name, call, [randn(*shape)])


PRODUCTS: list[tuple[str, list[tuple[int, ...]], Call]] = [
    ("outer", [(3,), (5,)], lambda lib, x: lib.outer(*x)),
    ("dot", [(7,), (7,)], lambda lib, x: lib.dot(*x)),
    ("vdot", [(7,), (7,)], lambda lib, x: lib.vdot(*x)),
    ("mv", [(3, 5), (5,)], lambda lib, x: lib.mv(*x)),
    ("addmm", [(4,), (3, 5), (5, 4)], lambda lib, x: lib.addmm(*x)),
    ("addmm", [(3, 1), (3, 5), (5, 4)], lambda lib, x: lib.addmm(*x, beta=0.5, alpha=-2)),
    ("baddbmm", [(1, 4), (2, 3, 5), (2, 5, 4)], lambda lib, x: lib.baddbmm(*x, alpha=3)),
    ("inner", [(2, 3, 5), (4, 5)], lambda lib, x: lib.inner(*x)),
    ("inner", [(), (4, 5)], lambda lib, x: lib.inner(*x)),
    ("tensordot", [(2, 3, 5), (3, 5, 4)], lambda lib, x: lib.tensordot(*x)),
    ("tensordot", [(2, 3), (4, 2)], lambda lib, x: lib.tensordot(*x, dims=0)),
    ("tensordot", [(2, 3, 5), (5, 4, 2)], lambda lib, x: lib.tensordot(*x, dims=([0, 2], [2, 0]))),
    ("kron", [(2, 3), (4, 5)], lambda lib, x: lib.kron(*x)),
    ("kron", [(3,), (2, 1, 4)], lambda lib, x: lib.kron(*x)),
    ("cross", [(2, 3), (2, 3)], lambda lib, x: lib.cross(*x, dim=1)),
    ("cross", [(3, 4), (3, 1)], lambda lib, x: lib.cross(*x, dim=0)),
    ("meshgrid", [(3,), (4,), (2,)], lambda lib, x: lib.meshgrid(*x, indexing="ij")),
    ("meshgrid", [(3,), (4,), (2,)], lambda lib, x: lib.meshgrid(x, indexing="xy")),
    ("hstack", [(3,), (4,)], lambda lib, x: lib.hstack(x)),
    ("hstack", [(2, 3), (2, 1)], lambda lib, x: lib.hstack(x)),
    ("vstack", [(3,), (3,)], lambda lib, x: lib.vstack(x)),
    ("vstack", [(2, 3), (1, 3)], lambda lib, x: lib.vstack(x)),
    ("dstack", [(3,), (3,)], lambda lib, x: lib.dstack(x)),
    ("dstack", [(2, 3), (2, 3)], lambda lib, x: lib.dstack(x)),
    ("dstack", [(2, 3, 1), (2, 3, 4)], lambda lib, x: lib.dstack(x)),
]


@pytest.mark.parametrize(("name", "shapes", "call"), PRODUCTS)
def test_several_tensors_give_what_torch_gives(
    agree: Any, name: str, shapes: list[tuple[int, ...]], call: Call
) -> None:
    both_ways(agree, name, call, [randn(*s, seed=i) for i, s in enumerate(shapes)])


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 5), (5, 4)]),
    ("ij,jk", [(3, 5), (5, 4)]),
    ("ba,cb", [(3, 5), (4, 3)]),
    ("ii", [(4, 4)]),
    ("ii->i", [(4, 4)]),
    ("iij->ji", [(3, 3, 2)]),
    ("iii->i", [(3, 3, 3)]),
    ("ij->ji", [(3, 5)]),
    ("ij->", [(3, 5)]),
    ("...ij->...ji", [(2, 4, 3, 5)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(5,), (5,)]),
    ("bij,bjk->bik", [(2, 3, 5), (2, 5, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 5), (4, 5, 4)]),
    ("...ij,...jk", [(2, 3, 5), (5, 4)]),
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ik,jkl,il->ij", [(3, 5), (4, 5, 2), (3, 2)]),
    ("a,b,c,d->dcba", [(2,), (3,), (4,), (5,)]),
    ("ij,ik->ij", [(3, 4), (3, 5)]),
    ("ij,kj->j", [(3, 4), (5, 4)]),
    ("ij,ij->i", [(3, 1), (3, 4)]),
    ("ij,jk->ik", [(3, 1), (5, 4)]),
    ("i...,i...->...", [(3, 2, 1), (3, 4)]),
    ("ijj,jk->ki", [(2, 3, 3), (3, 4)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    (" i j , j k -> i k ", [(3, 5), (5, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum_gives_what_torch_gives(
    agree: Any, equation: str, shapes: list[tuple[int, ...]]
) -> None:
    inputs = [randn(*s, seed=i) for i, s in enumerate(shapes)]
    both_ways(agree, "einsum", lambda lib, x: lib.einsum(equation, *x), inputs)


WHOLE: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "einsum",
        lambda lib: lib.einsum(
            "ij,kj->ik", lib.arange(6).reshape(2, 3), lib.arange(9).reshape(3, 3)
        ),
    ),
    ("outer", lambda lib: lib.outer(lib.arange(3), lib.arange(4))),
    ("kron", lambda lib: lib.kron(lib.arange(4).reshape(2, 2), lib.arange(3))),
    ("cross", lambda lib: lib.cross(lib.tensor([1, 2, 3]), lib.tensor([0, -4, 5]), dim=0)),
    ("flip", lambda lib: lib.arange(6).reshape(2, 3).bool().flip(1)),
    ("roll", lambda lib: lib.arange(6, dtype=lib.int32).roll(2)),
    ("repeat", lambda lib: lib.arange(3, dtype=lib.uint8).repeat(2, 2)),
    ("diag_embed", lambda lib: lib.diag_embed(lib.tensor([True, False]))),
    ("repeat_interleave", lambda lib: lib.arange(3).repeat_interleave(lib.tensor([3, 0, 1]))),
]


@pytest.mark.parametrize(("name", "call"), WHOLE)
def test_whole_numbers_stay_whole(agree: Any, name: str, call: Callable[[Any], Any]) -> None:
    agree(name, call(engine), call(torch))
