"""Shape rules against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.engine import shape as shapes
from gradcli.errors import OptionError, RangeError, ShapeError

small = st.lists(st.sampled_from((0, 1, 2, 3, 4, 6)), max_size=4).map(tuple)


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Where each element lies, in row-major order."""
    return [
        sum(i * s for i, s in zip(at, strides, strict=True))
        for at in itertools.product(*(range(size) for size in shape))
    ]


@given(small)
def test_contiguous_strides_number_the_elements(shape: tuple[int, ...]) -> None:
    assert offsets(shape, shapes.contiguous_strides(shape)) == list(range(math.prod(shape)))


@settings(max_examples=300, derandomize=True)
@given(small, st.lists(st.sampled_from((0, 1, 2, 3, 4, 6, 8, 12, 24)), max_size=4), small)
def test_a_view_shows_the_same_elements_and_is_found_when_it_exists(
    shape: tuple[int, ...], strides_list: list[int], to: tuple[int, ...]
) -> None:
    strides = tuple((strides_list + [1] * 4)[: len(shape)])
    if math.prod(shape) != math.prod(to):
        return
    found = shapes.view_strides(shape, strides, to)
    if found is not None:
        assert offsets(to, found) == offsets(shape, strides)
    elif shapes.is_contiguous(shape, strides):
        raise AssertionError("a contiguous tensor has every view")


@settings(max_examples=300, derandomize=True)
@given(st.permutations((2, 3, 4)), st.permutations((0, 1, 2)))
def test_a_transposed_view_splits_where_it_can(sizes: list[int], order: list[int]) -> None:
    plain = shapes.contiguous_strides(tuple(sizes))
    shape, strides = tuple(sizes[d] for d in order), tuple(plain[d] for d in order)
    split = (*shape[:2], 1, shape[2])
    found = shapes.view_strides(shape, strides, split)
    assert found is not None
    assert offsets(split, found) == offsets(shape, strides)


@given(small, small)
def test_broadcast_is_what_the_rule_says(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    n = max(len(a), len(b))
    left, right = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    fits = all(x == y or 1 in (x, y) for x, y in zip(left, right, strict=True))
    if not fits:
        with pytest.raises(ShapeError, match="do not broadcast"):
            shapes.broadcast(a, b, "add")
        return
    wanted = tuple(x if y == 1 else y for x, y in zip(left, right, strict=True))
    assert shapes.broadcast(a, b, "add") == wanted


def test_dims_count_from_both_ends() -> None:
    assert shapes.dim_index(-1, 3, "sum") == 2
    assert shapes.dim_set((-1, 0), 3, "sum") == (0, 2)
    assert shapes.dim_set(None, 2, "sum") == (0, 1)
    with pytest.raises(RangeError, match=r"sum: dim 3 is outside -3\.\.2"):
        shapes.dim_index(3, 3, "sum")
    with pytest.raises(OptionError, match="twice"):
        shapes.dim_set((0, -3), 3, "sum")


def test_impossible_shapes_are_refused_by_name() -> None:
    with pytest.raises(ShapeError, match="zeros: a size cannot be negative"):
        shapes.check_shape((2, -1), "zeros")
    with pytest.raises(ShapeError, match="at most 8 dimensions, got 9"):
        shapes.check_shape((1,) * 9, "zeros")
    with pytest.raises(OptionError, match=r"whole numbers, got 2\.5"):
        shapes.check_shape((2.5,), "zeros")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="only one size can be -1"):
        shapes.infer((-1, -1), 4, "reshape")
    with pytest.raises(ShapeError, match="does not hold 0 elements"):
        shapes.infer((0, -1), 0, "reshape")
