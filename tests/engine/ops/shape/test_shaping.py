"""Shapes, repeats and products: what they refuse, and that views stay views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import GradcliError

Z = engine.zeros

REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("movedim", lambda: Z(2, 3).movedim((0, 0), (0, 1)), "cannot move dims (0, 0)"),
    ("movedim", lambda: Z(2, 3).movedim((0, 1), 0), "cannot move dims"),
    ("unflatten", lambda: Z(2, 6).unflatten(1, (4, -1)), "does not hold 6 elements"),
    ("unflatten", lambda: Z().unflatten(0, (1,)), "without dimensions"),
    ("narrow", lambda: Z(5).narrow(0, 3, 3), "start 3 and length 3 leave a dimension of 5"),
    ("narrow", lambda: Z(5).narrow(0, -6, 1), "leave a dimension of 5"),
    ("narrow", lambda: Z(5).narrow(0, 0, -1), "leave a dimension of 5"),
    ("select", lambda: Z().select(0, 0), "without dimensions"),
    ("tensor_split", lambda: Z(5).tensor_split(0), "indices_or_sections must be from 1 to"),
    ("meshgrid", lambda: engine.meshgrid(Z(2, 2)), "needs vectors"),
    ("meshgrid", lambda: engine.meshgrid(Z(2), indexing="yx"), "indexing must be 'ij' or 'xy'"),
    ("repeat", lambda: Z(2, 3).repeat(2), "1 number for 2 dimensions"),
    ("repeat", lambda: Z(2).repeat(-1), "a size cannot be negative"),
    ("repeat_interleave", lambda: Z(2).repeat_interleave(-1), "must not be negative"),
    (
        "repeat_interleave",
        lambda: Z(2).repeat_interleave(engine.tensor([1, 2, 3])),
        "3 repeats for a dimension of 2",
    ),
    (
        "repeat_interleave",
        lambda: Z(2).repeat_interleave(2, output_size=5),
        "output_size 5 given, but there are 4",
    ),
    ("rot90", lambda: Z(2, 3).rot90(1, (1, 1)), "name one dimension twice"),
    ("rot90", lambda: Z(2).rot90(), "needs two dims"),
    ("fliplr", lambda: Z(2).fliplr(), "needs 2 or more"),
    ("flipud", lambda: Z().flipud(), "needs 1 or more"),
    ("diag", lambda: Z(2, 2, 2).diag(), "needs 1 or 2 dimensions"),
    ("outer", lambda: engine.outer(Z(2, 2), Z(2)), "needs two vectors"),
    ("dot", lambda: engine.dot(Z(2), Z(2, 2)), "needs two vectors"),
    ("mv", lambda: engine.mv(Z(2), Z(2)), "needs a matrix and a vector"),
    ("addmm", lambda: engine.addmm(Z(2, 3), Z(1, 2), Z(2, 3)), "does not fit the product (1, 3)"),
    ("baddbmm", lambda: engine.baddbmm(Z(1), Z(2, 1, 2), Z(3, 2, 1)), "two batches of as many"),
    ("tensordot", lambda: engine.tensordot(Z(2, 3), Z(2, 3), 1), "differ in size"),
    ("tensordot", lambda: engine.tensordot(Z(2), Z(2), 2), "2 dims of shapes"),
    ("cross", lambda: engine.cross(Z(2), Z(2)), "needs a dimension of 3"),
]


@pytest.mark.parametrize(("name", "call", "text"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(name: str, call: Any, text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        call()
    assert str(caught.value).startswith(f"{name}: ")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.movedim(0, 1),
        lambda x: x.narrow(1, 1, 2),
        lambda x: x.select(0, -1),
        lambda x: x.diagonal(1),
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.tensor_split(2)[1],
        lambda x: x.unflatten(1, (2, 2)),
        lambda x: x.broadcast_to((2, 3, 4)),
    ],
)
def test_a_view_shows_what_is_written_later(view: Callable[[Any], Any]) -> None:
    x = Z(3, 4)
    seen = view(x)
    x.fill_(1)
    assert seen.sum().item() == seen.numel() > 0


def test_copies_keep_what_they_had() -> None:
    x = Z(3, 4)
    made = [x.flip(0), x.roll(1), x.repeat(1, 1), x.tile(1), x.rot90(0), x.diag(), x.rot90(2)]
    x.fill_(1)
    assert [y.sum().item() for y in made] == [0] * len(made)


def test_eight_dimensions_repeat_too() -> None:
    x = engine.arange(2).reshape(*[1] * 7, 2)
    assert x.repeat(2, *[1] * 7).reshape(-1).tolist() == [0, 1, 0, 1]


def test_addmm_does_not_look_at_what_beta_0_leaves_out() -> None:
    nan = engine.full((2, 2), float("nan"))
    a = engine.eye(2)
    assert engine.addmm(nan, a, a, beta=0).tolist() == [[1, 0], [0, 1]]


def test_one_tensor_gives_one_of_at_least_so_many_dimensions_and_several_give_several() -> None:
    number, vector = engine.tensor(1.0), engine.arange(3)
    assert engine.atleast_1d(number).shape == (1,)
    assert [x.shape for x in engine.atleast_2d(number, vector)] == [(1, 1), (1, 3)]
    assert [x.shape for x in engine.atleast_3d([vector, engine.zeros(2, 5)])] == [
        (1, 3, 1),
        (2, 5, 1),
    ]
    assert engine.atleast_3d() == ()
