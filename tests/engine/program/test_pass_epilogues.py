"""The pass `epilogues`: an elementwise call after a product becomes part of it, where it may."""

from __future__ import annotations

from typing import Any

import pytest
from replays import kernels, program, pure

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.array import Array, empty, run
from gradcli.engine.nn import functional as F

ONLY = ["epilogues"]


def normal(*shape: int) -> Any:
    engine.manual_seed(sum(shape))
    return engine.randn(*shape)


A, B, BIAS = normal(33, 40), normal(40, 21), normal(21)


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh", "sigmoid", "exp", "floor", "neg", "abs"])
def test_an_elementwise_call_is_done_by_the_product(name: str) -> None:
    step = pure(lambda a, b: getattr(engine, name)(a @ b))
    assert kernels(step, A, B, passes=()) == ["matmul", name]
    assert kernels(step, A, B, passes=ONLY) == ["matmul_then"]


def test_options_of_the_row_come_along() -> None:
    step = pure(lambda a, b: F.leaky_relu((a @ b).clamp(-3.0, 2.0), 0.3))
    assert kernels(step, A, B, passes=ONLY) == ["matmul_then", "leaky_relu"]


def test_a_batch_of_products_under_another_shape() -> None:
    step = pure(lambda a, b: (a @ b).reshape(6, 15).tanh())
    assert kernels(step, normal(2, 3, 4), normal(4, 15), passes=ONLY) == ["matmul_then"]
    assert kernels(step, normal(2, 9, 4), normal(2, 4, 5), passes=ONLY) == ["matmul_then"]


def test_a_convolution_takes_the_row_behind_it_along() -> None:
    images, filters = normal(3, 2, 9, 8), normal(5, 2, 3, 3)
    step = pure(lambda x, w: engine.conv2d(x, w, padding=1, stride=2).relu())
    assert kernels(step, images, filters, passes=()) == ["conv2d_forward", "relu"]
    assert kernels(step, images, filters, passes=ONLY) == ["conv2d_forward_then"]


def test_a_product_that_is_read_again_is_kept_too() -> None:
    def step(a: Any, b: Any) -> Any:
        x = a @ b
        return x.relu(), x + 1

    assert kernels(pure(step), A, B, passes=ONLY) == ["matmul_then", "add"]
    (fused, _) = program(pure(step), A, B, passes=ONLY).calls
    assert fused.outputs[0].numel == 33 * 21
    (alone,) = program(pure(lambda a, b: (a @ b).relu()), A, B, passes=ONLY).calls
    assert alone.outputs[0].numel == 0


def test_a_product_that_is_returned_is_kept_too() -> None:
    def step(a: Any, b: Any) -> Any:
        x = a @ b
        return x, x.relu()

    assert kernels(pure(step), A, B, passes=ONLY) == ["matmul_then"]


def trained(activation: Any) -> Any:
    def make() -> Any:
        engine.manual_seed(4)
        model = nn.Sequential(nn.Linear(40, 30), activation(), nn.Linear(30, 20), activation())
        head = nn.Linear(20, 3)
        weights = [*model.parameters(), *head.parameters()]

        def step(x: Any) -> Any:
            for w in weights:
                w.grad = None
            head(model(x)).sum().backward()
            return tuple(w.grad for w in weights)

        return step

    return make


@pytest.mark.parametrize(
    ("activation", "name"),
    [(nn.ReLU, "relu"), (nn.GELU, "gelu"), (nn.Tanh, "tanh"), (nn.Sigmoid, "sigmoid")],
)
def test_slopes_are_done_by_the_product_that_gives_the_gradient(activation: Any, name: str) -> None:
    plain = kernels(trained(activation), A, passes=())
    assert plain.count(name) == plain.count(f"{name}_backward") == 2
    fused = kernels(trained(activation), A, passes=ONLY)
    assert not {name, f"{name}_backward"} & set(fused)
    assert fused.count("matmul_then") == 4


def test_a_slope_beyond_the_second_cache_is_a_call_of_its_own() -> None:
    def step(a: Any, b: Any, x: Any) -> Any:
        grad = product(a, b)
        out = empty(grad.shape, grad.dtype)
        run("tanh_backward", x.array.reshape(grad.shape), grad, out)
        return engine.Tensor(out)

    for rows, found in ((512, ["matmul_then"]), (520, ["matmul", "tanh_backward"])):
        a, b, x = normal(rows, 3), normal(3, 512), normal(rows, 512)
        assert kernels(pure(step), a, b, x, passes=ONLY) == found


def test_a_product_that_is_changed_in_between_stays() -> None:
    def step(a: Any, b: Any) -> Any:
        x = a @ b
        x[0] = 7.0
        return x.relu()

    assert "matmul_then" not in kernels(pure(step), A, B, passes=ONLY)


def test_a_part_of_a_product_stays() -> None:
    step = pure(lambda a, b: ((a @ b)[1:].relu(), (a @ b).t().relu()))
    assert "matmul_then" not in kernels(step, A, B, passes=ONLY)


def product(a: Any, b: Any) -> Array:
    out = empty((1, a.shape[0], b.shape[1]), a.dtype)
    run("matmul", a.array.reshape((1, *a.shape)), b.array.reshape((1, *b.shape)), NONE, out)
    return out


NONE = engine.empty(0).array


def test_a_result_that_lies_over_the_product_or_what_it_reads_stays() -> None:
    def over_itself(a: Any, b: Any) -> Any:
        x = product(a, b)
        run("relu", x, x)
        return engine.Tensor(x)

    def over_an_input(a: Any, b: Any) -> Any:
        a = a * 1
        run("relu", product(a, b).reshape(a.shape), a.array)
        return a

    square = normal(21, 21)
    assert kernels(pure(over_itself), A, B, passes=ONLY) == ["matmul", "relu"]
    assert kernels(pure(over_an_input), square, square, passes=ONLY) == ["mul", "matmul", "relu"]


def test_a_result_in_memory_that_is_used_in_between_stays() -> None:
    """The product comes first: what it wrote there would be read, or overwritten."""

    def make(between: Any) -> Any:
        def made() -> Any:
            y = engine.ones(1, 33, 21)

            def step(a: Any, b: Any) -> Any:
                x = product(a, b)
                other = between(y)
                run("relu", x, y.array)
                return other, y

            return step

        return made

    assert kernels(make(lambda y: y * 2), A, B, passes=ONLY) == ["matmul", "mul", "relu"]
    assert kernels(make(lambda y: y.fill_(2.0)), A, B, passes=ONLY) == ["matmul", "fill", "relu"]
    assert kernels(make(lambda y: A * 2), A, B, passes=ONLY) == ["matmul_then", "mul"]


def test_a_kept_value_that_is_made_in_between_stays() -> None:
    def step(order: str) -> Any:
        def taken(a: Any, b: Any) -> Any:
            kept = engine.relu(BIAS.expand(33, 21)).array if order == "before" else None
            grad = product(a, b).reshape((33, 21))
            if kept is None:
                kept = engine.relu(BIAS.expand(33, 21)).array
            out = empty(grad.shape, grad.dtype)
            run("relu_backward", kept, grad, out)
            return engine.Tensor(out)

        return pure(taken)

    assert "matmul_then" in kernels(step("before"), A, B, passes=ONLY)
    assert "matmul_then" not in kernels(step("between"), A, B, passes=ONLY)


def test_a_product_that_is_what_was_kept_stays() -> None:
    def step(a: Any, b: Any) -> Any:
        x = product(a, b)
        out = empty(x.shape, x.dtype)
        run("relu_backward", x, x, out)
        return engine.Tensor(out)

    assert kernels(pure(step), A, B, passes=ONLY) == ["matmul", "relu_backward"]


def test_nothing_kept_is_written_before_a_check() -> None:
    def make(checked: bool) -> Any:
        def made() -> Any:
            y = engine.ones(1, 33, 21)

            def step(a: Any, b: Any) -> Any:
                x = product(a, b)
                if checked:
                    engine.require_finite(b)
                run("relu", x, y.array)
                return y

            return step

        return made

    assert kernels(make(False), A, B, passes=ONLY) == ["matmul_then"]
    assert kernels(make(True), A, B, passes=ONLY) == ["matmul", "require_finite", "relu"]


def test_a_comparison_or_another_type_stays() -> None:
    step = pure(lambda a, b: ((a @ b) > 0, (a @ b).to(engine.float64).relu()))
    assert "matmul_then" not in kernels(step, A, B, passes=ONLY)
