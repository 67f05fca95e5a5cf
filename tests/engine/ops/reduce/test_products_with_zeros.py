"""Gradients of gradients of products in which numbers are 0: those of a chain of `mul`."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import autograd
from gradcli.engine.tensor import Tensor

NUMBERS = [
    [2.0, 3.0, 5.0, -1.0],
    [0.0, 3.0, 5.0, -1.0],
    [2.0, 0.0, 5.0, -1.0],
    [0.0, 3.0, 0.0, -1.0],
    [2.0, 0.0, 0.0, -1.0],
    [0.0, 0.0, 0.0, -1.0],
    [0.0, 0.0, 0.0, 0.0],
]


def chain(x: Tensor) -> Tensor:
    y: Tensor = x[0] * x[1] * x[2] * x[3]
    return y


def scattered(x: Tensor) -> Tensor:
    """The first number times the others, put on it."""
    index = engine.zeros(3, dtype=engine.int64)
    y: Tensor = engine.scatter_reduce(x[:1], 0, index, x[1:], reduce="prod").sum()
    return y


def along(x: Tensor) -> Tensor:
    y: Tensor = engine.cumprod(x, 0)[3]
    return y


def whole(x: Tensor) -> Tensor:
    y: Tensor = engine.prod(x)
    return y


def slopes(function: object, numbers: list[float]) -> list[list[float]]:
    """The value, the gradient, and the rows of the gradient's gradient."""
    assert callable(function)
    x = engine.tensor(numbers, dtype=engine.float64, requires_grad=True)
    y = function(x)
    (first,) = autograd.grad([y], [x], create_graph=True)
    assert first is not None
    rows = []
    for part in first:
        (row,) = autograd.grad([part], [x], retain_graph=True, allow_unused=True)
        rows.append([0.0] * len(numbers) if row is None else row.tolist())
    return [[y.item()], first.tolist(), *rows]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
@pytest.mark.parametrize("function", [scattered, along, whole])
def test_products_of_zeros_have_second_gradients(function: object, numbers: list[float]) -> None:
    assert slopes(function, numbers) == slopes(chain, numbers)
