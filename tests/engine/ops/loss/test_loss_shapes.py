"""Losses of tensors that do not belong together are refused, not broadcast."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.errors import ShapeError


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("soft_margin_loss", [(4,), (4, 1)]),
        ("hinge_embedding_loss", [(4, 3), (3,)]),
        ("poisson_nll_loss", [(4, 1), (1, 4)]),
        ("gaussian_nll_loss", [(4,), (4, 1), (4,)]),
        ("margin_ranking_loss", [(4,), (4,), (4, 1)]),
        ("triplet_margin_loss", [(4, 3), (4, 3), (3,)]),
        ("triplet_margin_with_distance_loss", [(4, 3), (3,), (4, 3)]),
        ("cross", [(2, 3), (3,)]),
    ],
)
def test_pairs_of_other_shapes_are_no_loss(name: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ShapeError, match=f"^{name}: .* must have"):
        getattr(engine, name)(*(engine.ones(shape) for shape in shapes))
