"""Short names for what other ops do, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import both_ways, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity

CASES: list[tuple[str, list[tuple[int, ...]], Callable[[Any, Any], Any]]] = [
    ("concat", [(2, 3), (2, 1)], lambda lib, x: lib.concat(x, 1)),
    ("Tensor.view_as", [(2, 3), (3, 2)], lambda lib, x: x[0].view_as(x[1]) * x[1]),
    ("Tensor.reshape_as", [(2, 3), (3, 2)], lambda lib, x: x[0].T.reshape_as(x[1]) * x[1]),
    ("broadcast_tensors", [(2, 1), (3,)], lambda lib, x: lib.broadcast_tensors(*x)),
    ("column_stack", [(3,), (3, 2)], lambda lib, x: lib.column_stack(x)),
    ("trace", [(3, 5)], lambda lib, x: lib.trace(x[0])),
    ("diff", [(3, 5)], lambda lib, x: lib.diff(x[0])),
    ("diff", [(4, 2)], lambda lib, x: x[0].diff(2, 0)),
    ("diff", [(1, 3)], lambda lib, x: x[0].diff(dim=0)),
]


@pytest.mark.parametrize(("name", "shapes", "call"), CASES)
def test_short_names_do_what_they_do_in_torch(
    agree: Any, name: str, shapes: list[tuple[int, ...]], call: Callable[[Any, Any], Any]
) -> None:
    both_ways(agree, name, call, [randn(*s, seed=i) for i, s in enumerate(shapes)])


def test_numbers_are_counted_as_in_torch(agree: Any) -> None:
    x = torch.tensor([3, 0, 3, 1, 3])
    for dtype in (torch.float32, torch.float64):
        w = randn(5).to(dtype)
        agree("bincount", engine.bincount(ours(x), ours(w), 7), torch.bincount(x, w, 7))
    agree("bincount", engine.bincount(ours(x)), torch.bincount(x))
    agree("bincount", engine.bincount(ours(x[:0])), torch.bincount(x[:0]))
    agree("Tensor.type_as", ours(x).type_as(ours(w)), x.type_as(w))
