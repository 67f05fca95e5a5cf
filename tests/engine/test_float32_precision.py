"""set_float32_matmul_precision: which calls are marked, and that the CPU's numbers stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import recording
from gradcli.engine.nn import functional as F
from gradcli.engine.program.record import Recording
from gradcli.errors import OptionError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    engine.set_float32_matmul_precision("highest")


def randn(*size: int, dtype: Any = engine.float32) -> engine.Tensor:
    return engine.randn(*size, dtype=dtype).requires_grad_()


PRODUCTS: dict[str, Callable[[Any], engine.Tensor]] = {
    "matmul": lambda t: randn(3, 5, dtype=t) @ randn(5, 4, dtype=t),
    "linear": lambda t: F.linear(randn(3, 5, dtype=t), randn(4, 5, dtype=t), randn(4, dtype=t)),
    "conv2d": lambda t: F.conv2d(randn(2, 3, 6, 7, dtype=t), randn(4, 3, 3, 3, dtype=t)),
    "conv_transpose2d": lambda t: F.conv_transpose2d(
        randn(1, 2, 4, 5, dtype=t), randn(2, 3, 3, 2, dtype=t)
    ),
}
MULTIPLY = {"matmul", "conv2d_forward", "conv2d_grad_input", "conv2d_grad_weight"}


def marks(product: Callable[[Any], engine.Tensor], dtype: Any) -> dict[str, set[Any]]:
    """The options of all calls of a product and its gradient, by kernel."""
    recorded = Recording()
    with recording.to(recorded):
        product(dtype).sum().backward()
    found: dict[str, set[Any]] = {}
    for call in recorded.calls:
        found.setdefault(call.kernel, set()).add(call.options)
    return found


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_float32_and_their_gradients_are_marked_where_high_is_set(name: str) -> None:
    assert engine.get_float32_matmul_precision() == "highest"
    before = marks(PRODUCTS[name], engine.float32)
    engine.set_float32_matmul_precision("high")
    after, doubles = marks(PRODUCTS[name], engine.float32), marks(PRODUCTS[name], engine.float64)
    multiplied = MULTIPLY & set(after)
    assert len(multiplied) == (1 if name in ("matmul", "linear") else 3)
    for kernel in multiplied:
        assert (before[kernel], after[kernel], doubles[kernel]) == ({()}, {(1.0,)}, {()})
    assert all(before[k] == after[k] for k in after if k not in MULTIPLY and k != "normal")


def test_a_depthwise_weight_gradient_multiplies_no_matrices_and_is_not_marked() -> None:
    engine.set_float32_matmul_precision("high")
    found = marks(
        lambda t: F.conv2d(randn(1, 3, 5, 5, dtype=t), randn(3, 1, 3, 3, dtype=t), groups=3),
        engine.float32,
    )
    assert found["depthwise_grad_weight"] == {()}


def test_the_setting_belongs_to_a_program_and_the_mark_stands_behind_a_row_s_numbers() -> None:
    x, w = engine.randn(5, 6), engine.randn(7, 6)

    def step(x: engine.Tensor) -> engine.Tensor:
        return F.elu(F.linear(x, w), alpha=0.5) * 1.0

    fast = engine.capture(step, passes=["epilogues"])
    made = []
    for precision in ("highest", "high"):
        engine.set_float32_matmul_precision(precision)
        results = [fast(x) for _ in range(3)]
        made.append(results[-1].tolist())
        assert all(y.tolist() == made[0] for y in results)  # the CPU rounds nothing
    assert len(fast.programs) == 2
    plain, marked = (
        next(call for call in program.calls if call.kernel == "matmul_then").options
        for program in fast.programs
    )
    assert marked == (*(*plain, 0.0, 0.0)[:2], 1.0)


@pytest.mark.parametrize(
    ("given", "match"), [("medium", "autocast"), ("tf32", '"highest" or "high", got \'tf32\'')]
)
def test_other_precisions_are_refused_with_what_to_do(given: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        engine.set_float32_matmul_precision(given)
