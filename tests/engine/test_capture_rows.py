"""What a captured step returned stays what it was, whether the step is replayed or runs eagerly."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import CaptureError, NumericsError

ROWS = 6


class State:
    """Something that a step changes in place, and every way to return it."""

    def __init__(self) -> None:
        self.sums = engine.zeros(2, 3)
        self.weight = engine.ones(3, requires_grad=True)

    def change(self, x: Any) -> None:
        self.sums.add_(x)
        self.weight.grad = None
        (self.weight * x * x).sum().backward()
        with engine.no_grad():
            self.weight.sub_(0.1 * x)


RETURNED: dict[str, Callable[[State, Any], Any]] = {
    "state": lambda s, x: s.sums,
    "a view of it": lambda s, x: s.sums[1],
    "turned": lambda s, x: s.sums.t(),
    "a parameter": lambda s, x: s.weight,
    "a gradient": lambda s, x: s.weight.grad,
    "a value with history": lambda s, x: (s.weight * 2.0).sum(),
    "its argument": lambda s, x: x,
    "tuple": lambda s, x: (s.sums, 7, s.sums.sum()),
    "nested": lambda s, x: {"a": [s.sums, None], "b": (s.weight, {"c": s.sums[0]})},
}


def refused(step: Any) -> Any:
    def reading(x: Any) -> Any:
        x.sum().item()
        return step(x)

    return engine.capture(reading, on_fallback=lambda _: None)


def no_room(step: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        importlib.import_module("gradcli.engine.program.capture"), "MAX_PROGRAMS", -1
    )
    return engine.capture(step, on_fallback=lambda _: None)


def copies(value: Any, of: Callable[[Any], Any] = lambda tensor: tensor) -> Any:
    """What it holds now, as plain numbers; `of` gives a part of each tensor."""
    if isinstance(value, dict):
        return {key: copies(item, of) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(copies(item, of) for item in value)
    return of(value).tolist() if isinstance(value, engine.Tensor) else value


def rows(scanned: Any, count: int) -> list[Any]:
    """What a scan gave, row by row."""
    return [copies(scanned, itemgetter(i)) for i in range(count)]


def kinds(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[Any], Any]]:
    return {
        "captured": lambda step: engine.capture(step, on_fallback=lambda _: None),
        "eager": lambda step: engine.capture(step, eager=True),
        "refused": refused,
        "too many kinds of arguments": lambda step: no_room(step, monkeypatch),
    }


KINDS = ("captured", "eager", "refused", "too many kinds of arguments")


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scan", [True, False], ids=["scan", "calls"])
def test_results_are_what_the_step_returned_at_that_time(
    kind: str, returned: str, scan: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    xs = engine.arange(ROWS * 3, dtype=engine.float32).reshape(ROWS, 3)

    def made() -> Callable[[Any], Any]:
        state = State()

        def step(x: Any) -> Any:
            state.change(x)
            return RETURNED[returned](state, x)

        return step

    plain = made()
    right = [copies(plain(x)) for x in xs]
    fast = kinds(monkeypatch)[kind](made())
    if scan:
        assert rows(fast.scan(xs), ROWS) == right
    else:
        assert copies([fast(x) for x in xs]) == right
    later = [fast(x) for x in xs]
    assert not any(t.requires_grad for one in later for t in _tensors(one))


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list, dict)):
        items = value.values() if isinstance(value, dict) else value
        return [t for item in items for t in _tensors(item)]
    return [value] if isinstance(value, engine.Tensor) else []


@pytest.mark.parametrize("returned", RETURNED)
def test_inside_another_captured_step_too(returned: str) -> None:
    def made(capture: bool) -> Callable[[Any], Any]:
        state = State()

        def step(x: Any) -> Any:
            state.change(x)
            return RETURNED[returned](state, x)

        inner = engine.capture(step, on_fallback=lambda _: None)

        def outer(xs: Any) -> Any:
            state.sums.zero_()
            with engine.no_grad():
                state.weight.copy_(engine.ones(3))
            if not capture:
                return [copies(step(x)) for x in xs]
            return inner.scan(xs[:3]), inner(xs[3]), inner(xs[4])

        return outer

    xs = engine.arange(15, dtype=engine.float32).reshape(5, 3)
    right = made(False)(xs)
    outer = engine.capture(made(True))
    for _ in range(4):
        first, fourth, fifth = outer(xs)
        assert [*rows(first, 3), copies(fourth), copies(fifth)] == right
    assert outer.programs


def test_plain_values_that_change_are_no_result() -> None:
    count = iter(range(100))
    told: list[str] = []
    counting = engine.capture(lambda x: (x * 2.0, next(count)), on_fallback=told.append)
    came = [counting(engine.ones(1))[1] for _ in range(5)]
    assert came == [0, 1, 2, 3, 4]
    assert told == [
        "the step is not captured: it returned (<tensor>, 0) the first time and (<tensor>, 1) the "
        "second"
    ]
    reading = engine.capture(lambda x: x.sum().item(), eager=True)
    with pytest.raises(CaptureError, match=r"returned 0\.0 for row 0 and 1\.0 for row 1; return"):
        reading.scan(engine.arange(3, dtype=engine.float32))
    assert reading.scan(engine.ones(3)) == 1.0


@pytest.mark.parametrize("eager", [True, False])
def test_steps_that_end_in_the_middle_have_the_rows_before(eager: bool) -> None:
    total = engine.zeros(2)

    def step(x: Any) -> Any:
        engine.require_finite(x)
        return total.add_(x)

    xs = engine.ones(7, 2)
    xs[4, 1] = float("inf")
    for _ in range(2):
        total.zero_()
        result = engine.capture(step, eager=eager).steps(xs)
        assert result.done == 4
        assert isinstance(result.error, NumericsError)
        assert result.outputs[:4].tolist() == [[1.0] * 2, [2.0] * 2, [3.0] * 2, [4.0] * 2]
        assert total.tolist() == [4.0, 4.0]


def test_numbers_that_are_equal_and_not_the_same_are_two_kinds_of_arguments() -> None:
    fast = engine.capture(lambda x, by: x * by)
    one = engine.ones(1)
    for by in (0.0, 0.0, 0.0, -0.0, 0, False):
        assert str(fast(one, by).item()) == str((one * by).item())
    assert engine.capture(lambda x, by: x * by)(one, float("nan")).isnan().item()
    nans = engine.capture(lambda x, by: x * by)
    for _ in range(3):
        nans(one, float("nan"))
    assert len(nans.programs) == 1
