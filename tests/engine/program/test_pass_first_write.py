"""The pass `first_write`: a result is made where it would be copied to, if nobody would notice."""

from __future__ import annotations

from typing import Any

import pytest
from replays import kernels, program, pure

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.array import run

ONLY = ["first_write"]
engine.manual_seed(6)
X = engine.randn(12, 12)


def kept(change: Any) -> Any:
    """A step that changes memory which it finds again the next time."""

    def make() -> Any:
        w = engine.ones(12, 12)
        return lambda x: (change(w, x), w)

    return make


def test_a_result_is_made_where_it_is_copied_to() -> None:
    make = kept(lambda w, x: w.copy_(x.exp()))
    assert kernels(make, X, passes=()) == ["exp", "copy"]
    assert kernels(make, X, passes=ONLY) == ["exp"]


def test_an_elementwise_call_may_overwrite_what_it_reads() -> None:
    assert kernels(kept(lambda w, x: w.copy_(w + x)), X, passes=ONLY) == ["add"]


def test_what_reads_it_in_another_order_may_not() -> None:
    assert kernels(kept(lambda w, x: w.copy_(w.t() + x)), X, passes=ONLY) == ["add", "copy"]
    assert kernels(kept(lambda w, x: w.copy_(w @ x)), X, passes=ONLY) == ["matmul", "copy"]


def test_running_statistics_and_counters_of_batch_norm() -> None:
    def make() -> Any:
        norm = nn.BatchNorm1d(12)
        return lambda x: (norm(x), norm.num_batches_tracked)

    assert kernels(make, X, passes=()) == ["add", "copy", "batch_norm_train"]
    assert kernels(make, X, passes=ONLY) == ["add", "batch_norm_train"]


def test_pieces_are_made_in_what_they_are_joined_to() -> None:
    step = pure(lambda x: engine.cat([x * 2, x.exp(), x @ x], 0))
    assert kernels(step, X, passes=()).count("copy") == 4
    assert kernels(step, X, passes=ONLY) == ["mul", "exp", "matmul"]


def test_columns_of_what_they_are_joined_to_are_not_for_all_kernels() -> None:
    step = pure(lambda x: engine.cat([x * 2, x.exp()], 1))
    assert kernels(step, X, passes=ONLY) == ["mul", "exp", "copy"]


def test_readers_of_the_result_read_it_there() -> None:
    def change(w: Any, x: Any) -> Any:
        y = x.exp()
        w.copy_(y)
        return y.sum(), y[3:].sum()

    def make() -> Any:
        w = engine.ones(12, 12)
        return lambda x: (*change(w, x), w)

    (exp, *sums) = program(make, X, passes=ONLY).calls
    assert {call.inputs[0].buffer for call in sums} == {exp.outputs[0].buffer}


@pytest.mark.parametrize(
    "change",
    [
        lambda w, x: (lambda y: (w.sum(), w.copy_(y)))(x.exp())[0],  # read in between
        lambda w, x: (lambda y: (w.fill_(3.0), w.copy_(y)))(x.exp())[1],  # written in between
        lambda w, x: (lambda y: (w.copy_(y), w.fill_(3.0), y.sum()))(x.exp())[2],  # and read again
        lambda w, x: w.copy_(x.exp()[0]),  # a part, repeated
        lambda w, x: w.copy_(x > 0),  # another type
        lambda w, x: w.copy_(x.exp().t()),  # another order
        lambda w, x: w.copy_(x),  # not made here
        lambda w, x: (lambda y: (engine.require_finite(x), w.copy_(y)))(x.exp())[1],  # checked
    ],
)
def test_a_copy_that_somebody_would_miss_stays(change: Any) -> None:
    assert "copy" in kernels(kept(change), X, passes=ONLY)


def test_what_is_read_after_a_first_part_was_made_is_not_overwritten_by_it() -> None:
    def change(w: Any, x: Any) -> Any:
        y = x * 2
        run("add", y.array, w.array, y.array)
        w.copy_(y)

    assert kernels(kept_only(change), X, passes=ONLY) == ["mul", "add", "copy"]


def kept_only(change: Any) -> Any:
    def make() -> Any:
        w = engine.ones(12, 12)

        def step(x: Any) -> Any:
            change(w, x)
            return w

        return step

    return make


def test_a_result_that_is_returned_stays() -> None:
    def change(w: Any, x: Any) -> Any:
        y = x.exp()
        w.copy_(y)
        return y

    assert kernels(kept(change), X, passes=ONLY) == ["exp", "copy"]
