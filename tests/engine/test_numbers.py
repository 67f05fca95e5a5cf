"""Python's numbers among tensors: what they become, and what does not fit."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.errors import DeviceError, DTypeError, GradcliError, OptionError

BYTES = engine.tensor([0, 1, 250], dtype=engine.uint8)


def test_negative_numbers_wrap_around_in_bytes() -> None:
    assert (BYTES + -1).tolist() == [255, 0, 249]
    assert engine.full((1,), -1, dtype=engine.uint8).tolist() == [255]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (256, "uint8"),
        (-257, "uint8"),
        (2**31, "int32"),
        (2**63, "int64"),
        (-(2**70), "int64"),
        (float("nan"), "int64"),
        (float("inf"), "int32"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(number: float, dtype: str) -> None:
    kind = getattr(engine, dtype)
    with pytest.raises(OptionError, match=r"does not fit into|within 64 bits"):
        engine.full((2,), number, dtype=kind)
    with pytest.raises(OptionError, match=r"does not fit into|within 64 bits"):
        engine.zeros(2, dtype=kind)[0] = number
    if isinstance(number, int):
        with pytest.raises(OptionError, match=r"does not fit into|within 64 bits"):
            engine.zeros(2, dtype=kind) + number


def test_a_double_beyond_float32_is_infinite() -> None:
    assert (engine.ones(1) * 1e300).tolist() == [float("inf")]
    assert (engine.ones(1) * -1e300).tolist() == [float("-inf")]


def test_signs_of_whole_numbers_are_signs() -> None:
    assert engine.tensor([-7, 0, 9]).sign().tolist() == [-1, 0, 1]
    assert BYTES.sign().tolist() == [0, 1, 1]


def test_whole_numbers_stay_whole_in_relu_and_clamp() -> None:
    x = engine.tensor([-3, 0, 5])
    assert x.relu().tolist() == [0, 0, 5] and x.relu().dtype is engine.int64
    assert x.clamp(-1, 2).tolist() == [-1, 0, 2] and x.clamp(-1, 2).dtype is engine.int64
    assert x.clamp(min=0.5).dtype is engine.float32


def test_clamp_with_crossed_limits_is_the_upper_one() -> None:
    assert engine.tensor([0.0, 2.0, 9.0]).clamp(3, 1).tolist() == [1.0, 1.0, 1.0]
    assert engine.tensor([0, 2, 9]).clamp(3, 1).tolist() == [1, 1, 1]
    with pytest.raises(OptionError, match="clamp: min and max must be numbers"):
        engine.ones(2).clamp(float("nan"), 1)
    with pytest.raises(DTypeError, match="clamp: min must be a Tensor, a number or None"):
        engine.ones(2).clamp("3", 1)


def test_the_gradient_of_a_maximum_with_nan_goes_to_both() -> None:
    nan = float("nan")
    for op in (engine.maximum, engine.minimum):
        x = engine.tensor([nan, 1.0, 2.0], requires_grad=True)
        y = engine.tensor([1.0, nan, 2.0], requires_grad=True)
        op(x, y).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [1.0, 1.0, 0.5]
        assert y.grad is not None and y.grad.tolist() == [1.0, 1.0, 0.5]


def test_truth_values_have_no_difference_and_no_negative() -> None:
    truth = engine.tensor([True, False])
    for wrong in (lambda: truth - truth, lambda: truth - 1, lambda: 1 - truth, lambda: -truth):
        with pytest.raises(DTypeError, match="truth values"):
            wrong()


def test_wrong_ways_to_make_a_tensor_name_the_right_one() -> None:
    with pytest.raises(OptionError, match="size must be a tuple of whole numbers, got 2"):
        engine.full(2, 3)
    with pytest.raises(DTypeError, match=r"engine.tensor\(data\)"):
        engine.Tensor([1, 2])


@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: engine.tensor(1, dtype=dtype),
        lambda dtype: engine.tensor([1.0], dtype=dtype),
        lambda dtype: engine.zeros(2, dtype=dtype),
        lambda dtype: engine.arange(3, dtype=dtype),
        lambda dtype: engine.randn(3, dtype=dtype),
        lambda dtype: engine.frombuffer(b"abcd", dtype=dtype),
        lambda dtype: engine.ones(3).sum(dtype=dtype),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", float])
def test_an_element_type_is_no_text_and_no_type_of_python(make, dtype: object) -> None:
    with pytest.raises(DTypeError, match="must be an element type such as engine"):
        make(dtype)


def test_a_tensor_is_not_filled_with_text() -> None:
    with pytest.raises(TypeError, match="full: fill_value must be a number"):
        engine.full((2,), "a")


def test_sizes_beyond_the_machine_are_refused() -> None:
    with pytest.raises(DeviceError, match="no memory"):
        engine.empty(2**40, 2**40)
    with pytest.raises(DeviceError, match="no memory"):
        engine.ones(1).expand(2**62, 4) + 1


@pytest.mark.parametrize("diagonal", [2**62, -(2**62)])
def test_a_diagonal_far_outside_is_all_or_nothing(diagonal: int) -> None:
    kept = engine.tril(engine.ones(2, 2), diagonal=diagonal).sum().item()
    assert kept == (4 if diagonal > 0 else 0)
    with pytest.raises(GradcliError, match="whole number"):
        engine.tril(engine.ones(2, 2), diagonal=1.5)
