"""Softmax along any dimension: rows that are done together have the bits of rows done apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.nn import functional as F

OPS: list[Callable[..., Any]] = [F.softmax, F.log_softmax]


def values(rows: int, columns: int, dtype: engine.DType) -> Tensor:
    """Some are infinite, one column is of -inf alone."""
    engine.manual_seed(rows * columns)
    x = engine.randn(rows, columns).to(dtype)
    x[rows // 2, columns // 3] = -math.inf
    x[:, columns // 2] = -math.inf
    return x


def gradient(op: Callable[..., Any], x: Tensor, along: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    y = op(x, dim)
    (y * along).sum().backward()
    assert x.grad is not None
    return y.detach(), x.grad


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.bfloat16])
@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (9, 64), (17, 65), (3, 200), (130, 130)])
def test_columns_have_the_bits_of_two_columns_alone(
    op: Callable[..., Any], dtype: engine.DType, rows: int, columns: int
) -> None:
    x = values(rows, columns, dtype)
    along = engine.randn(rows, columns).to(dtype)
    whole = gradient(op, x, along, 0)
    for first in range(columns - 1):
        pair = slice(first, first + 2)
        alone = gradient(op, x[:, pair].contiguous(), along[:, pair].contiguous(), 0)
        for one, other in zip(whole, alone, strict=True):
            assert engine.equal(one[:, pair].nan_to_num(7.0), other.nan_to_num(7.0)), first


@pytest.mark.parametrize("op", OPS)
def test_a_dimension_in_the_middle_is_that_of_each_part(op: Callable[..., Any]) -> None:
    x, along = engine.randn(3, 11, 70), engine.randn(3, 11, 70)
    whole = gradient(op, x, along, 1)
    for part in range(3):
        alone = gradient(op, x[part], along[part], 0)
        for one, other in zip(whole, alone, strict=True):
            assert engine.equal(one[part], other)
