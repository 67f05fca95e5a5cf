"""The pass `views`: a copy that is only read is read where it came from, if that stays the same."""

from __future__ import annotations

from typing import Any

import pytest
from replays import kernels, program, pure

from gradcli import engine
from gradcli.engine.array import empty, run
from gradcli.engine.nn import functional as F

ONLY = ["views"]
engine.manual_seed(6)
X = engine.randn(12, 12)
Y = engine.randn(2, 12, 12)


def test_a_contiguous_copy_is_not_made() -> None:
    step = pure(lambda x: (x.clone().exp(), x.clone().reshape(3, 48)[1:].sum()))
    assert kernels(step, X, passes=()) == ["copy", "exp", "copy", "sum"]
    assert kernels(step, X, passes=ONLY) == ["exp", "sum"]


def test_a_copy_of_a_copy_of_a_part_is_read_in_the_part() -> None:
    step = pure(lambda x: x[3:].clone()[2:].clone().exp())
    assert kernels(step, X, passes=ONLY) == ["exp"]
    assert program(step, X, passes=ONLY).calls[0].inputs[0].offset == 5 * 12


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("matmul", lambda x: x.t().contiguous() @ x),
        ("matmul", lambda x: x @ x[:, 2:7].contiguous()),
        ("add", lambda x: x.t().contiguous() + x),
        ("pow", lambda x: x.exp() ** x[:, ::2].t().contiguous().t().t().reshape(6, 12)[0]),
    ],
)
def test_kernels_that_take_strides_read_the_view(name: str, step: Any) -> None:
    assert kernels(pure(step), X, passes=()).count("copy") == 1
    found = kernels(pure(step), X, passes=ONLY)
    assert found[-1] == name
    assert ("copy" in found) == (name == "pow")  # a row of a view is no view of the whole


def test_attention_reads_heads_where_they_lie() -> None:
    def step(x: Any) -> Any:
        heads = x.reshape(2, 12, 3, 4).transpose(1, 2).clone()
        return F.scaled_dot_product_attention(heads, heads, heads)

    assert kernels(pure(step), Y, passes=())[:2] == ["copy", "attention_forward"]
    assert kernels(pure(step), Y, passes=ONLY)[0] == "attention_forward"


def test_kernels_that_want_contiguous_memory_get_the_copy() -> None:
    step = pure(lambda x: x.t().contiguous().exp())
    assert kernels(step, X, passes=ONLY) == ["copy", "exp"]
    step = pure(lambda x: x[:6, :6] @ x[::2, ::2].contiguous())  # slow to read, time and again
    assert kernels(step, X, passes=ONLY) == ["copy", "matmul"]


def test_another_element_type_is_a_copy() -> None:
    step = pure(lambda x: x.to(engine.float64).exp())
    assert kernels(step, X, passes=ONLY) == ["copy", "exp"]


def test_a_source_that_is_overwritten_before_it_is_read_is_copied() -> None:
    def make() -> Any:
        w = engine.ones(12, 12)

        def step(x: Any) -> Any:
            before = w.clone()
            w.add_(x)
            return before * 2

        return step

    assert kernels(make, X, passes=ONLY) == ["copy", "add", "mul"]


def test_a_source_that_its_reader_overwrites_is_copied() -> None:
    def make() -> Any:
        w = engine.ones(12, 12)

        def step(x: Any) -> Any:
            turned = w.t().clone()
            run("add", turned.array, x.array, w.array)
            return w

        return step

    assert kernels(make, X, passes=ONLY) == ["copy", "add"]


def test_a_copy_that_is_changed_or_returned_stays() -> None:
    def changed(x: Any) -> Any:
        y = x.clone()
        run("fill", y[0].array)
        return y.exp()

    assert kernels(pure(changed), X, passes=ONLY) == ["copy", "fill", "exp"]
    assert kernels(pure(lambda x: x.clone()), X, passes=ONLY) == ["copy"]


def test_a_copy_beside_other_elements_stays() -> None:
    """Only the first half of the buffer is a copy."""

    def step(x: Any) -> Any:
        both = empty((24, 12), x.dtype)
        run("copy", x.array, both.view((12, 12), (12, 1)))
        run("copy", x.array, both.view((12, 12), (12, 1), 144))
        return engine.Tensor(both).exp()

    assert kernels(pure(step), X, passes=ONLY) == ["copy", "copy", "exp"]
