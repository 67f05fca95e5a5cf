"""split, chunk and unbind: views out, and gradients that are put together without a copy."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine.array import Array
from gradcli.engine.ops.shape.split import split_gradient
from gradcli.errors import GradcliError


def numbers(*shape: int) -> engine.Tensor:
    count = 1
    for size in shape:
        count *= size
    return engine.arange(count, dtype=engine.float32).reshape(shape)


def test_parts_share_the_memory_of_the_whole() -> None:
    x = numbers(4, 6)
    for part in (*x.split(2, dim=1), *x.chunk(3), *x.unbind(1)):
        assert part.array.storage is x.array.storage


def test_chunk_gives_at_most_that_many_parts() -> None:
    assert [part.shape[0] for part in numbers(7, 2).chunk(3)] == [3, 3, 1]
    assert [part.shape[0] for part in numbers(4, 2).chunk(3)] == [2, 2]
    assert [part.shape[0] for part in numbers(0, 2).chunk(3)] == [0, 0, 0]


def test_unbind_and_iteration_give_the_slices() -> None:
    x = numbers(2, 3)
    assert [part.tolist() for part in x.unbind(1)] == [[0, 3], [1, 4], [2, 5]]
    assert [part.tolist() for part in x] == [[0, 1, 2], [3, 4, 5]]
    assert numbers(0, 3).unbind() == ()


@pytest.mark.parametrize("chunks", [0, -1, 1.5, True])
def test_chunk_refuses_what_is_no_number_of_parts(chunks: object) -> None:
    with pytest.raises(GradcliError, match="chunk: chunks must be"):
        numbers(3).chunk(chunks)


def gradient(parts: list[Array | None], shape: tuple[int, ...], size: int, dim: int) -> Array:
    return split_gradient(
        tuple(parts), shapes=(shape,), dtypes=(engine.float32,), split_size=size, dim=dim
    )


@pytest.mark.parametrize(("size", "dim"), [(2, 1), (1, 1), (1, 0), (3, 0), (6, 1), (4, 1)])
def test_gradients_that_lie_side_by_side_are_not_copied(size: int, dim: int) -> None:
    whole = numbers(3, 6)
    parts: list[Array | None] = [part.array for part in whole.split(size, dim)]
    joined = gradient(parts, (3, 6), size, dim)
    assert joined.storage is whole.array.storage
    assert joined.tolist() == whole.tolist()


def test_gradients_in_another_order_are_copied() -> None:
    a, b = (part.array for part in numbers(3, 4).split(2, 1))
    joined = gradient([b, a], (3, 4), 2, 1)
    assert joined.storage is not a.storage
    assert joined.tolist() == [[2, 3, 0, 1], [6, 7, 4, 5], [10, 11, 8, 9]]


def test_a_part_without_gradient_gets_0() -> None:
    x = numbers(2, 4).requires_grad_()
    (x.split(2, 1)[1] * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0, 3, 3], [0, 0, 3, 3]]
