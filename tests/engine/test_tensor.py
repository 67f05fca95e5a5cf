"""Tensors: values in and out, types mixed by torch's rules, views that share, indexing."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import (
    DTypeError,
    GradcliError,
    NumericsError,
    OptionError,
    RangeError,
    ShapeError,
)

F32, F64, I32, I64, U8, BOOL = (
    engine.float32,
    engine.float64,
    engine.int32,
    engine.int64,
    engine.uint8,
    engine.bool_,
)


def test_numbers_find_their_type() -> None:
    assert engine.tensor([1.5, 2]).dtype is F32
    assert engine.tensor([[1], [2]]).dtype is I64
    assert engine.tensor([True, False]).dtype is BOOL
    assert engine.tensor(3).dtype is I64
    assert engine.tensor([]).shape == (0,)
    assert engine.tensor([[], []]).shape == (2, 0)
    assert engine.tensor([1, 2], dtype=F64).tolist() == [1.0, 2.0]


def test_wrong_values_are_refused_in_words() -> None:
    with pytest.raises(ShapeError, match="rows of unequal length: 2 and 1"):
        engine.tensor([[1, 2], [3]])
    with pytest.raises(DTypeError, match="takes numbers, got str"):
        engine.tensor(["a"])
    with pytest.raises(OptionError, match="does not fit into"):
        engine.tensor([300], dtype=U8)
    with pytest.raises(DTypeError, match="cannot be made from object"):
        engine.tensor(object())


def test_buffers_are_copied_with_their_shape() -> None:
    source = array("d", [1.0, 2.0, 3.0])
    x = engine.tensor(source)
    source[0] = 9.0
    assert (x.dtype, x.tolist()) == (F64, [1.0, 2.0, 3.0])
    grid = memoryview(bytes(range(6))).cast("B", [2, 3])
    assert engine.tensor(grid).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_frombuffer_shares_memory() -> None:
    source = bytearray(b"\x01\x02\x03\x04")
    x = engine.frombuffer(source, dtype=U8)
    source[0] = 9
    assert x.tolist() == [9, 2, 3, 4]
    with pytest.raises(ShapeError, match="no whole number"):
        engine.frombuffer(b"abc", dtype=F32)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (F32, F64, F64),
        (I64, F32, F32),
        (BOOL, I32, I32),
        (U8, I32, I32),
        (I32, I64, I64),
        (BOOL, BOOL, BOOL),
        (U8, BOOL, U8),
    ],
)
def test_mixed_types_promote(a: Any, b: Any, wanted: Any) -> None:
    x, y = engine.ones(2, dtype=a), engine.ones(2, dtype=b)
    assert engine.maximum(x, y).dtype is wanted
    assert engine.maximum(y, x).dtype is wanted


def test_python_numbers_and_0_dim_tensors_are_weak() -> None:
    assert (engine.ones(2) * 2.5).dtype is F32
    assert (engine.tensor([1, 2]) * 2.5).dtype is F32
    assert (engine.tensor([1, 2], dtype=I32) + 2).dtype is I32
    assert (engine.ones(2) * engine.tensor(2.0, dtype=F64)).dtype is F32
    assert (engine.tensor([1, 2]) / 2).tolist() == [0.5, 1.0]
    assert (2 / engine.tensor([4.0])).tolist() == [0.5]
    assert (2 ** engine.tensor([3.0])).tolist() == [8.0]


def test_views_share_memory() -> None:
    x = engine.zeros(3, 4)
    x.reshape(2, 6)[1].fill_(1)
    x.transpose(0, 1)[0].fill_(2)
    x.permute(1, 0)[3, 2] = 3
    x[0:1].expand(3, 4)
    assert x.tolist() == [[2, 0, 0, 0], [2, 0, 1, 1], [2, 1, 1, 3]]


def test_view_refuses_what_needs_a_copy() -> None:
    x = engine.zeros(3, 4).t()
    assert x.reshape(12).shape == (12,)
    with pytest.raises(ShapeError, match="has no such view"):
        x.view(12)


def test_indexing_follows_torch() -> None:
    x = engine.tensor([[0, 1, 2], [3, 4, 5]])
    assert x[1, 2].item() == 5
    assert x[-1].tolist() == [3, 4, 5]
    assert x[:, ::2].tolist() == [[0, 2], [3, 5]]
    assert x[..., None].shape == (2, 3, 1)
    assert x[5:].shape == (0, 3)
    with pytest.raises(RangeError, match=r"index 2 is outside -2\.\.1 of dimension 0"):
        x[2]
    with pytest.raises(RangeError, match="3 indices for 2 dimension"):
        x[0, 0, 0]
    with pytest.raises(OptionError, match="step must be positive"):
        x[::-1]


def test_conversions_keep_or_clip_values() -> None:
    x = engine.tensor([-1.5, 0.0, 2.7, float("nan"), 1e20])
    assert x.to(I64).tolist()[:4] == [-1, 0, 2, 0]
    assert x.to(U8).tolist() == [0, 0, 2, 0, 255]
    assert x.to(BOOL).tolist() == [True, False, True, True, True]
    assert engine.tensor([2**62 + 1]).to(I64).tolist() == [2**62 + 1]
    assert engine.full((2,), 2**62 + 1, dtype=I64).tolist() == [2**62 + 1] * 2


def test_one_element_becomes_a_number() -> None:
    assert engine.tensor([[2.5]]).item() == 2.5
    assert float(engine.tensor(2)) == 2.0
    assert bool(engine.tensor([0])) is False
    with pytest.raises(ShapeError, match="exactly one element"):
        engine.ones(2).item()
    with pytest.raises(GradcliError, match="not one answer"):
        bool(engine.ones(2))


def test_repr_shows_numbers_type_and_history() -> None:
    said = "tensor([[1.0000, 2.5000],\n        [3.0000, 4.0000]])"
    assert repr(engine.tensor([[1.0, 2.5], [3, 4]])) == said
    assert repr(engine.tensor([1], dtype=U8)) == "tensor([1], dtype=gradcli.uint8)"
    x = engine.ones(1, requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<mul>)"
    assert "..." in repr(engine.zeros(2000))


def test_tensors_are_hashable_and_iterable() -> None:
    x = engine.tensor([[1, 2], [3, 4]])
    assert len({x, x}) == 1
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]


def test_linspace_ends_where_it_should() -> None:
    assert engine.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert engine.linspace(0, 10, 7, dtype=F64).tolist()[-1] == 10.0


def test_huge_tensors_say_what_is_missing() -> None:
    with pytest.raises(GradcliError, match=r"no memory for 4,000,000,000,000,000,000 bytes"):
        engine.empty(10**18)


def test_whole_numbers_to_whole_powers_stay_whole() -> None:
    x = engine.tensor([2, 3])
    assert (x**3).tolist() == [8, 27]
    assert (x**3).dtype is I64
    assert (engine.tensor([3, -2, -1]) ** engine.tensor([41, 63, -3])).tolist() == [
        (3**41 + (1 << 63)) % (1 << 64) - (1 << 63),  # wrapped
        -(1 << 63),
        -1,
    ]
    with pytest.raises(OptionError, match="negative powers"):
        x**-1


def test_whole_numbers_are_not_divided_by_0() -> None:
    x = engine.tensor([2, 3])
    for divide in (engine.remainder, engine.fmod, engine.floor_divide):
        for zero in (0, engine.tensor([1, 0])):
            with pytest.raises(NumericsError, match="cannot be divided by 0"):
                divide(x, zero)
        with pytest.raises(DTypeError, match="truth values cannot be divided"):
            divide(x > 2, x > 3)
    assert (x / 0).tolist() == [float("inf")] * 2


def test_a_captured_division_by_0_ends_the_replay() -> None:
    divide = engine.capture(lambda x, y: x // y)
    nine = engine.tensor([9, 8])
    for _ in range(3):
        assert divide(nine, engine.tensor([2, 3])).tolist() == [4, 2]
    assert not divide.fallback_reason
    with pytest.raises(NumericsError, match="number at position 1 is 0"):
        divide(nine, engine.tensor([2, 0]))
