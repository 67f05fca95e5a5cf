"""Einsum: what it refuses, and that it does not build what matmul would not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.errors import GradcliError


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands, got 1"),
        ("ij", [(2, 3, 4)], "'ij' of 'ij' does not fit shape (2, 3, 4)"),
        ("ijk", [(2, 3)], "does not fit shape (2, 3)"),
        ("ij,jk", [(2, 3), (4, 5)], "'j' is 3 in one operand and 4 in another"),
        ("ii", [(2, 3)], "'i' is 2 and 3"),
        ("...,...", [(2,), (3,)], "the ellipsis is 2 in one operand and 3"),
        ("ij->ik", [(2, 3)], "names a letter twice or an unknown one"),
        ("ij->ii", [(2, 2)], "names a letter twice or an unknown one"),
        ("i..j", [(2, 3)], "dots that are no single ellipsis"),
        ("i1", [(2, 3)], "may hold letters"),
        ("i->j->k", [(2,)], "may hold letters"),
    ],
)
def test_what_does_not_fit_is_refused(
    equation: str, shapes: list[tuple[int, ...]], text: str
) -> None:
    with pytest.raises(GradcliError) as caught:
        engine.einsum(equation, *[engine.zeros(*s) for s in shapes])
    assert str(caught.value).startswith("einsum: ")
    assert text in str(caught.value)


def test_a_product_of_matrices_takes_no_more_memory_than_its_result(
    allocated: Callable[[], int],
) -> None:
    a, b = engine.ones(200, 300), engine.ones(300, 100)
    before = allocated()
    result = engine.einsum("ij,jk->ik", a, b)
    assert allocated() - before == result.numel() * 4
    assert result.tolist() == [[300.0] * 100] * 200


def test_operands_may_come_in_a_list() -> None:
    a, b = engine.ones(2, 3), engine.ones(3)
    assert engine.einsum("ij,j->i", [a, b]).tolist() == [3, 3]
