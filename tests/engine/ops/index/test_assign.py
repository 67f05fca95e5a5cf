"""Assignment to part of a tensor: what is overwritten, what is remembered, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import AutogradError, DTypeError, OptionError, RangeError, ShapeError

I = engine.tensor  # noqa: E741


@pytest.mark.parametrize(
    "index",
    [0, slice(1, 3), I([0, 2]), (slice(None), I([1, -1])), I([True, False, True]), (Ellipsis, 0)],
)
def test_the_memory_of_other_names_is_overwritten_and_its_version_counted(index: Any) -> None:
    x = engine.zeros(3, 4)
    alias, before = x.detach(), x.array.storage.version
    x[index] = 1.5
    assert alias.tolist() == x.tolist()
    assert (alias == 1.5).sum().item() == x[index].numel()
    assert x.array.storage.version == before + 1


@pytest.mark.parametrize("index", [0, I([0, 1]), I([True, False])])
def test_a_value_kept_for_a_gradient_and_overwritten_is_noticed(index: Any) -> None:
    y = engine.ones(2, requires_grad=True) * 2
    z = y * y
    with engine.no_grad():
        y[index] = 0.0
    with pytest.raises(AutogradError, match="changed in place"):
        z.sum().backward()


def test_an_assignment_that_is_recorded_leaves_kept_values_alone() -> None:
    x = engine.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    z = y * y
    y[1] = x[0] * 5
    y[I([2])] = I([7.0])
    (z.sum() + y.sum()).backward()
    assert y.tolist() == [1.0, 5.0, 7.0]
    assert x.grad is not None and x.grad.tolist() == [2 + 1 + 5, 4, 6]


def test_a_plain_tensor_takes_values_that_have_a_history() -> None:
    w = engine.tensor([2.0, 3.0], requires_grad=True)
    table = engine.zeros(2, 3)
    table[:, 1] = w
    table[I([0, 1]), I([0, 2])] = w * w
    assert table.tolist() == [[4, 2, 0], [0, 3, 9]]
    (table * I([[1.0, 10, 100]])).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [10 + 4, 10 + 600]


def test_leaves_and_views_are_not_assigned_to_where_gradients_are_recorded() -> None:
    leaf = engine.ones(2, 2, requires_grad=True)
    made = leaf * 2
    for x in (leaf, made[0], made.T):
        for index in (0, I([0]), x.detach() == 1):
            with pytest.raises(AutogradError, match="no gradient passes"):
                x[index] = 1.0
    assert leaf.tolist() == [[1, 1], [1, 1]]
    plain = engine.zeros(2, 2)
    with pytest.raises(AutogradError, match="no gradient passes"):
        plain[0][I([0])] = leaf[0, :1]


def test_parts_may_overlap_what_is_assigned() -> None:
    x = engine.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[I([4, 0])] = x[1:3]
    assert x.tolist() == [1, 0, 1, 2, 0]


def test_of_several_values_for_one_place_the_last_stays() -> None:
    x = engine.zeros(3)
    x[I([1, 1, 1])] = I([5.0, 6.0, 7.0])
    assert x.tolist() == [0, 7, 0]
    x = engine.ones(3, requires_grad=True)
    v = engine.tensor([5.0, 6.0, 7.0], requires_grad=True)
    y = x * 1
    y[I([1, 0, 1])] = v
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 1]
    assert v.grad is not None and v.grad.tolist() == [0, 1, 1]


def test_index_put_adds_values_one_after_another() -> None:
    x, v = engine.zeros(3, requires_grad=True), engine.ones(4, requires_grad=True)
    y = x.index_put((I([0, 2, 0, -1]),), v * 2, accumulate=True)
    assert y.tolist() == [4, 0, 4]
    (y * I([1.0, 2.0, 3.0])).sum().backward()
    assert v.grad is not None and v.grad.tolist() == [2, 6, 2, 6]
    assert x.grad is not None and x.grad.tolist() == [1, 2, 3]
    z = engine.zeros(2, 3)
    assert z.index_put_((None, I([2, 0])), engine.ones(2)) is z
    assert z.tolist() == [[1, 0, 1], [1, 0, 1]]


@pytest.mark.parametrize(
    ("index", "value", "error", "text"),
    [
        (I([3]), 1.0, RangeError, r"setitem: index 3 .* -3..2 of dimension 0, which has size 3"),
        ((0, I([0, 5])), 1.0, RangeError, "dimension 1, which has size 4"),
        (5, 1.0, RangeError, "setitem: index 5 is outside -3..2 of dimension 0"),
        (I([0, 1]), engine.ones(3, 4), ShapeError, "setitem: "),
        (0, engine.ones(2, 4), ShapeError, "does not fit into"),
        (I([True]), 1.0, ShapeError, "setitem: a mask"),
        (I([0.5]), 1.0, DTypeError, "setitem: an index tensor must be"),
        ((0, 0, 0), 1.0, RangeError, "setitem: 3 indices for 2"),
        ((Ellipsis, Ellipsis), 1.0, OptionError, "only one Ellipsis"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_written(
    index: Any, value: Any, error: type[Exception], text: str
) -> None:
    x = engine.zeros(3, 4)
    with pytest.raises(error, match=text):
        x[index] = value
    assert x.sum().item() == 0


def test_index_tensors_read_and_write_in_captured_steps() -> None:
    table = engine.arange(12, dtype=engine.float32).reshape(4, 3)
    other = table.clone()

    def step(x: engine.Tensor, rows: engine.Tensor, one: engine.Tensor) -> engine.Tensor:
        x[rows, 1:] = x[rows.flip(0), 1:] * 2
        x[one] = 5.0
        x[:, 0][x[:, 0] > 4] = -1.0
        return x[rows[:, None], I([2, 0])].sum()

    with engine.no_grad():
        fast = engine.capture(lambda rows, one: step(table, rows, one))
        for i in range(5):
            rows, one = I([i % 4, (i + 2) % 4]), I(i % 3)
            assert fast(rows, one).item() == step(other, rows, one).item()
            assert table.tolist() == other.tolist()
    assert not fast.fallback_reason and len(fast.programs) == 1


def test_places_of_a_mask_are_values_that_a_captured_step_would_have_to_read() -> None:
    told: list[str] = []
    fast = engine.capture(lambda x: x[x > 0].sum(), on_fallback=told.append)
    for _ in range(3):
        assert fast(I([1.0, -1.0, 2.0])).item() == 3.0
    assert len(told) == 1 and "reads the values" in told[0]
