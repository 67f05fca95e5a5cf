"""Copies between strides, at sizes where they go by tiles: each element comes to its place."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import Tensor

DTYPES = ("float32", "float64", "bfloat16", "int32", "int64", "uint8", "bool_")
SHAPES = ((16, 16), (37, 53), (3, 100), (100, 3), (1024, 20), (20, 1024), (5, 17000), (1, 40))


def numbered(shape: tuple[int, ...], dtype: str) -> Tensor:
    """Numbers that are exact in every element type, in no regular order."""
    count = engine.arange(engine.zeros(shape).numel())
    return (
        (count * 7 % 251 % (2 if dtype == "bool_" else 251)).to(getattr(engine, dtype)).view(shape)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_transposed_matrix_is_copied(shape: tuple[int, int], dtype: str, isa: str) -> None:
    x = numbered(shape, dtype)
    rows = x.tolist()
    assert x.t().contiguous().tolist() == [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_permuted_dimensions_are_copied(order: tuple[int, int, int], isa: str) -> None:
    x = numbered((19, 33, 50), "float32")
    y = x.permute(*order).contiguous()
    for at in ((0, 0, 0), (18, 32, 49), (7, 20, 3), (18, 0, 49)):
        place = tuple(at[d] for d in order)
        assert y[place].item() == x[at].item()
    back = [order.index(d) for d in range(3)]
    assert y.permute(*back).contiguous().tolist() == x.tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_transposed_matrix_is_copied_into_part_of_another(shape: tuple[int, int]) -> None:
    x = numbered(shape, "float32")
    out = engine.zeros(shape[1] + 2, shape[0] + 3)
    out[1:-1, 2:-1].copy_(x.t())
    inside = [row[2:-1] for row in out.tolist()[1:-1]]
    assert inside == x.t().contiguous().tolist()
    assert out.sum().item() == x.sum().item()


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_in_reverse_order_are_copied(dtype: str, isa: str) -> None:
    x = numbered((7, 131), dtype)
    assert x.flip(1).tolist() == [row[::-1] for row in x.tolist()]
    assert x.flip(0).tolist() == x.tolist()[::-1]
    assert x.t().flip(0).tolist() == x.t().tolist()[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_elements_are_copied(dtype: str, isa: str) -> None:
    column = numbered((40, 1), dtype)
    assert column.expand(40, 19).contiguous().tolist() == [row * 19 for row in column.tolist()]
    assert column.t().expand(3, 40).contiguous().tolist() == column.t().tolist() * 3
    one = numbered((), dtype)
    assert one.expand(5, 7).contiguous().tolist() == [[one.item()] * 7] * 5


@pytest.mark.parametrize("count", [1, 31, 20_000])
def test_where_takes_each_side_of_any_stride(count: int, isa: str) -> None:
    truth = numbered((count,), "bool_")
    a, b, number = numbered((count,), "float32"), -numbered((count,), "float32"), engine.tensor(0.5)
    chosen = truth.tolist()
    sides: list[Tensor] = [a, b, number, a.flip(0), engine.stack([a, b], 1)[:, 1]]
    for one in sides:
        for other in sides:
            left, right = (s.expand(count).tolist() for s in (one, other))
            expected = [x if t else y for t, x, y in zip(chosen, left, right, strict=True)]
            assert engine.where(truth, one, other).tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_lines_of_any_length_are_copied_to_any_place_of_a_page(dtype: str, isa: str) -> None:
    """Targets a little further in their page than their sources are copied in pieces."""
    for count in (1, 255, 256, 257, 1024, 1025, 2049, 20_000):
        x = numbered((count + 4096,), dtype)
        numbers = x.tolist()
        for shift in (0, 1, 3, 7, 8, 15, 16, 63, 64, 65, 512, 4095):
            out = engine.zeros(count + 4096 + 2, dtype=x.dtype)
            out[shift + 1 : shift + 1 + count].copy_(x[:count])
            wanted = [0] * (shift + 1) + numbers[:count] + [0] * (4097 - shift)
            assert out.tolist() == wanted
        assert engine.roll(x, 3).tolist() == numbers[-3:] + numbers[:-3]


def test_rows_are_rolled_and_padded() -> None:
    x = numbered((9, 1029), "float32")
    rows = x.tolist()
    assert engine.roll(x, 3, 1).tolist() == [row[-3:] + row[:-3] for row in rows]
    assert engine.roll(x, -2, 0).tolist() == rows[2:] + rows[:2]
    inside = engine.nn.functional.pad(x, (2, 3, 1, 2))
    assert inside[1:-2, 2:-3].tolist() == rows
    assert inside.sum().item() == x.sum().item()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool_"])
def test_rows_that_a_task_begins_or_ends_within_are_walked(dtype: str, isa: str) -> None:
    wide = numbered((5, 41, 311), dtype)
    views = [wide[:, :, 11:], wide[::2, 3:, :300], wide.transpose(0, 1)[:, 1:, :300]]
    for x in [*views, wide[:, :1, :300], wide[0, :, :1].expand(41, 300)]:
        plain = engine.tensor(x.tolist(), dtype=x.dtype)
        assert x.contiguous().tolist() == plain.tolist()
        for other in (wide[1, 2, :300], wide[2, : x.shape[-2], 7:8], wide[3, 4, 5:6]):
            repeated = engine.tensor(other.expand(x.shape).tolist(), dtype=x.dtype)
            assert (x == other).tolist() == (plain == repeated).tolist()
            assert (other < x).tolist() == (repeated < plain).tolist()
