"""Writing in place: the same memory, counted, and refused where a gradient would be lost."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.errors import AutogradError, DTypeError, OptionError, ShapeError


def test_operators_write_into_the_same_memory() -> None:
    x = engine.tensor([1.0, 2.0])
    alias, before = x.detach(), x
    x += 1
    x -= engine.tensor([0.5, 0.5])
    x *= 4
    x /= 2
    assert x is before
    assert alias.tolist() == [3.0, 5.0]


def test_a_hand_written_sgd_step_changes_the_parameters() -> None:
    model = nn.Linear(2, 1)
    with engine.no_grad():
        model.weight.fill_(1)
    model(engine.ones(4, 2)).sum().backward()
    with engine.no_grad():
        for p in model.parameters():
            p -= 0.5 * p.grad
    assert model.weight.tolist() == [[-1.0, -1.0]]
    model.weight.data -= 1
    assert model.weight.requires_grad and isinstance(model.weight, nn.Parameter)
    assert model.weight.tolist() == [[-2.0, -2.0]]


def test_alpha_scales_what_is_added() -> None:
    x, y = engine.tensor([1.0, 2.0]), engine.tensor([10.0, 20.0])
    assert x.add_(y, alpha=-0.1).tolist() == [0.0, 0.0]
    assert x.sub_(y, alpha=2).tolist() == [-20.0, -40.0]
    assert x.clamp_(min=-30).tolist() == [-20.0, -30.0]


def test_a_shifted_view_of_itself_is_read_before_it_is_written() -> None:
    x = engine.tensor([1.0, 2.0, 3.0, 4.0])
    x[1:] += x[:-1]
    assert x.tolist() == [1.0, 3.0, 5.0, 7.0]


WRITES: list[Callable[[Tensor], object]] = [
    lambda x: x.add_(1),
    lambda x: x.sub_(1),
    lambda x: x.mul_(2),
    lambda x: x.div_(2),
    lambda x: x.clamp_(0, 1),
    lambda x: x.fill_(0),
    lambda x: x.zero_(),
    lambda x: x.copy_(engine.ones(2)),
    lambda x: x.uniform_(),
    lambda x: x.__setitem__(0, 1.0),
]


@pytest.mark.parametrize("write", WRITES)
def test_writing_is_refused_where_gradients_are_recorded(
    write: Callable[[Tensor], object],
) -> None:
    leaf = engine.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match="no_grad"):
        write(leaf)
    if write is not WRITES[-1]:  # an assignment becomes a part of the history: test_assign.py
        with pytest.raises(AutogradError, match="no_grad"):
            write(leaf * 2)


@pytest.mark.parametrize("write", WRITES)
def test_writing_over_a_saved_value_is_noticed_by_backward(
    write: Callable[[Tensor], object],
) -> None:
    leaf = engine.ones(2, requires_grad=True)
    y = leaf * 2
    z = y * y
    with engine.no_grad():
        write(y)
    with pytest.raises(AutogradError, match="changed in place"):
        z.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: x.add_(y),
        lambda x, y: x.copy_(y),
    ],
)
def test_a_value_that_wants_a_gradient_is_not_written_away(
    write: Callable[[Tensor, Tensor], object],
) -> None:
    with pytest.raises(AutogradError, match="no gradient passes"):
        write(engine.zeros(2), engine.ones(2, requires_grad=True))


def test_a_sum_of_losses_keeps_its_history() -> None:
    weight = engine.ones(2, requires_grad=True)
    total = engine.zeros(())
    for factor in (1.0, 2.0):
        before = total
        total += (weight * factor).sum()
        assert before is not total
    total *= 2
    total.backward()
    assert total.item() == 12.0
    assert weight.grad is not None and weight.grad.tolist() == [6.0, 6.0]


def test_operators_refuse_leaves_and_views_where_gradients_are_recorded() -> None:
    leaf = engine.ones(2, 2, requires_grad=True)
    plain, made = engine.zeros(2, 2), leaf * 2
    for x in (leaf, made[0], made.T, plain[0]):
        with pytest.raises(AutogradError, match="no gradient passes"):
            x += leaf[0]
    with pytest.raises(AutogradError, match="no gradient passes"):
        plain[0] += leaf[0]
    x = (leaf * 2).sum()
    with pytest.raises(ShapeError, match="does not fit"):
        x += leaf


def test_results_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DTypeError, match="float32 does not fit into"):
        engine.tensor([1]).mul_(0.5)
    with pytest.raises(ShapeError, match="does not fit into"):
        engine.ones(2).add_(engine.ones(3, 2))


def test_copies_of_tensors_and_modules_are_independent() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].weight.grad = engine.ones(2, 2)
    twin = copy.deepcopy(model)
    assert isinstance(twin[0].weight, nn.Parameter) and twin[0].weight.requires_grad
    assert twin[0].weight.grad is not None and twin[0].weight.grad.tolist() == [[1, 1], [1, 1]]
    with engine.no_grad():
        twin[0].weight.zero_()
        twin[1].running_var.zero_()
    assert model[0].weight.tolist() != twin[0].weight.tolist()
    assert model[1].running_var.tolist() == [1.0, 1.0]


def test_copies_keep_shared_parameters_shared() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    twin = copy.deepcopy(model)
    assert twin[0].weight is twin[1].weight
    assert copy.copy(model[0].weight).data.array is model[0].weight.array


def test_what_cannot_be_copied_or_pickled_says_so() -> None:
    with pytest.raises(AutogradError, match="detach"):
        copy.deepcopy(engine.ones(2, requires_grad=True) * 2)
    with pytest.raises(OptionError, match="safetensors"):
        pickle.dumps(engine.ones(2))
    with pytest.raises(OptionError, match="safetensors"):
        pickle.dumps(nn.Linear(2, 2))
    with pytest.raises(OptionError, match="is not copied"):
        copy.deepcopy(engine.optim.SGD([engine.ones(2, requires_grad=True)], lr=0.1))


def test_a_tensor_compared_with_something_else_is_not_equal() -> None:
    x = engine.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    assert 1.0 in x and 2.0 not in x
    assert engine.tensor(1.0) in [None, 1]


def test_one_number_takes_a_format() -> None:
    assert f"{engine.tensor(1.5):.3f}" == "1.500"
    assert f"{engine.tensor([1])}" == "tensor([1])"


def test_transposes_and_data_are_views() -> None:
    x = engine.arange(6).reshape(2, 3)
    assert x.T.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.reshape(1, 2, 3).mT.shape == (1, 3, 2)
    x.data.fill_(7)
    assert x[1, 2].item() == 7 and x.stride(0) == 3
    with pytest.raises(ShapeError, match="data:"):
        x.data = engine.zeros(3, dtype=engine.int64)
    with pytest.raises(DTypeError, match="data:"):
        x.data = 3


def test_read_only_memory_is_read_only() -> None:
    text = b"\0" * 8
    x = engine.frombuffer(text, dtype=engine.int32)
    for write in (lambda: x.fill_(1), lambda: x.add_(1), lambda: x.__setitem__(0, 1)):
        with pytest.raises(OptionError, match="read-only"):
            write()
    assert text == b"\0" * 8
    assert x.memoryview().readonly and not engine.ones(1).memoryview().readonly
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    with pytest.raises(OptionError, match="read-only"):
        weight = engine.frombuffer(text, dtype=engine.float32).requires_grad_()
        engine.optim.SGD([weight], lr=0.1)


def test_memory_that_is_not_aligned_is_refused() -> None:
    with pytest.raises(ShapeError, match="not aligned"):
        engine.frombuffer(memoryview(bytearray(9))[1:], dtype=engine.int32)


def test_no_grad_decorates_with_and_without_brackets() -> None:
    x = engine.ones(1, requires_grad=True)

    @engine.no_grad
    def bare() -> Tensor:
        return x * 2

    @engine.no_grad()
    def called() -> Tensor:
        return x * 2

    assert not bare().requires_grad and not called().requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_arithmetic_in_place_reads_what_overlaps_before_it_writes(name: str) -> None:
    x = engine.rand(5, 3) + 1
    wanted = getattr(engine, name[:-1])(x[1:], x[:-1])
    getattr(x[1:], name)(x[:-1])
    assert x[1:].tolist() == wanted.tolist()
    wanted = getattr(engine, name[:-1])(x, x[0])
    assert getattr(x, name)(x[0]).tolist() == wanted.tolist()


@pytest.mark.parametrize("other", [2.5, (3,), (1, 3), (4, 3)])
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_arithmetic_in_place_is_the_plain_one(name: str, other: Any) -> None:
    operand = engine.rand(*other) + 1 if isinstance(other, tuple) else other
    for x in (engine.rand(4, 3), engine.rand(3, 4).T, engine.rand(8, 3)[::2]):
        before, wanted = x.array.storage, getattr(engine, name[:-1])(x, operand)
        version = before.version
        assert getattr(x, name)(operand) is x
        assert (x.tolist(), x.array.storage) == (wanted.tolist(), before)
        assert before.version > version
