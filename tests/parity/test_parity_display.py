"""Printed tensors look as torch's do."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity

CASES: list[tuple[Any, str]] = [
    (2.5, "float32"),
    (3, "int64"),
    (True, "bool"),
    ([], "float32"),
    ([], "int64"),
    ([[], []], "float32"),
    ([1.0, 2.0, 3.0], "float32"),
    ([1.0, 2.5, -3.25], "float32"),
    ([1e-5, 1.0], "float32"),
    ([1e9, 1.0], "float32"),
    ([1.0, 5000.0], "float32"),
    ([0.0, 0.0], "float32"),
    ([math.nan, math.inf, -math.inf, 1.0], "float32"),
    ([math.nan, 0.5], "float64"),
    ([[1, -20], [300, 4]], "int64"),
    ([[1, 2], [3, 4]], "int32"),
    ([[True, False], [False, False]], "bool"),
    ([[0.1 * i + 10 * j for i in range(4)] for j in range(3)], "float64"),
    ([[[1.5, 2], [3, 4]], [[5, 6], [7, 8]]], "float32"),
    ([float(i) for i in range(40)], "float32"),
    ([0.37 * i for i in range(40)], "float64"),
    (list(range(2000)), "int64"),
    ([[i * j * 0.25 for i in range(50)] for j in range(60)], "float32"),
    ([[[float(i + j + k) for i in range(12)] for j in range(11)] for k in range(10)], "float32"),
]


@pytest.mark.parametrize(("data", "dtype"), CASES)
def test_a_tensor_prints_as_in_torch(data: Any, dtype: str) -> None:
    wanted = repr(torch.tensor(data, dtype=getattr(torch, dtype))).replace("torch.", "gradcli.")
    assert repr(engine.tensor(data, dtype=getattr(engine, dtype))) == wanted


def test_a_leaf_says_that_it_asks_for_a_gradient() -> None:
    wanted = repr(torch.tensor([[1.5, 2.0]], requires_grad=True))
    assert repr(engine.tensor([[1.5, 2.0]], requires_grad=True)) == wanted
