"""outside.call: what is not captured with it, and what it does without a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import outside
from gradcli.errors import AutogradError, OptionError
from tests.engine.program.exchange import Exchange
from tests.engine.program.replays import bits, refuse


def test_a_step_that_is_undone_is_made_again() -> None:
    """Reading a value ends the recording: what the function had written is put back."""
    one = Exchange()
    why: list[str] = []

    def step(x: Any) -> Any:
        norm, _ = one.step(x)
        return norm * float(norm.item() > 0)

    captured = engine.capture(step, on_fallback=why.append)
    engine.manual_seed(31)
    rows = engine.rand(3, 5, 4)
    given = [bits(captured(row)) for row in rows]
    assert "reads the values" in why[0]
    assert one.calls[0] == one.calls[1]
    again = Exchange()
    assert given == [bits(again.step(row)[0]) for row in rows]
    assert one.state() == again.state()


def _made_in_the_step(one: Exchange) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        made = x * 2
        outside.call(one.add, [made], [one.out])
        return one.out + made

    return step


def _written_in_the_step(one: Exchange) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        made = engine.zeros(5, 4)
        outside.call(one.add, [one.source], [made])
        return one.out + made + x

    return step


def _another_function(one: Exchange) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        one.source.copy_(x)
        outside.call(lambda: one.add(), [one.source], [one.out])
        return one.out + x

    return step


def _another_name(one: Exchange) -> Callable[[Any], Any]:
    functions = iter([one.add, one.state] * 2)

    def step(x: Any) -> Any:
        outside.call(next(functions), [one.source], [one.out])
        return one.out + x

    return step


def _in_place_of_a_kernel(one: Exchange) -> Callable[[Any], Any]:
    turns = iter([True, False, False, False])

    def step(x: Any) -> Any:
        if next(turns):
            outside.call(one.add, [one.source], [one.out])
        else:
            one.out.copy_(one.source)
        return one.out + x

    return step


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            _made_in_the_step,
            "tensor 0 of outside.call, of shape (5, 4), is made by the step",
        ),
        (_written_in_the_step, "tensor 1 of outside.call, of shape (5, 4), is made by the step"),
        (_another_function, "give outside.call the same function in each step"),
        (_another_name, "was 'Exchange.add' the first time and 'Exchange.state' the second"),
        (_in_place_of_a_kernel, "was 'Exchange.add' the first time and 'copy' the second"),
    ],
)
def test_what_a_replay_could_not_repeat_stays_eager(
    make: Callable[[Exchange], Callable[[Any], Any]], why: str
) -> None:
    reasons: list[str] = []
    found, wanted = Exchange(), Exchange()
    captured, step = engine.capture(make(found), on_fallback=reasons.append), make(wanted)
    rows = engine.rand(4, 5, 4)
    assert [bits(captured(row)) for row in rows] == [bits(step(row)) for row in rows]
    assert why in reasons[0]
    assert found.state() == wanted.state()
    assert captured.programs == []


def test_the_function_remembers_nothing() -> None:
    weight, out = engine.ones(3).requires_grad_(), engine.zeros(3)
    made: list[Any] = []
    outside.call(lambda: made.append(weight * 2), [weight], [out])
    assert not made[0].requires_grad


def test_the_function_remembers_nothing_in_a_replay() -> None:
    """It may write weights there too, as in an eager step."""
    weight, out = engine.ones(3).requires_grad_(), engine.zeros(3)
    inside: list[bool] = []

    def double() -> None:
        weight.mul_(2)
        inside.append((weight * 1).requires_grad)
        out.copy_(weight)

    def step(x: Any) -> Any:
        outside.call(double, [], [weight, out])
        return out + x

    captured = engine.capture(step, on_fallback=pytest.fail)
    for _ in range(5):
        captured(engine.zeros(3))
    assert len(captured.programs) == 1
    assert inside == [False] * 5


def test_an_output_is_written_in_place() -> None:
    """Whoever kept it for backward is told, as of copy_."""
    weight, out = engine.ones(3).requires_grad_(), engine.ones(3)
    loss = (weight * out).sum()
    outside.call(lambda: None, [], [out])
    with pytest.raises(AutogradError, match="changed"):
        loss.backward()


def test_memory_that_may_only_be_read_is_no_output() -> None:
    shared = engine.frombuffer(bytes(8), dtype=engine.float32)
    with pytest.raises(OptionError, match=r"outside\.call: this tensor shares read-only memory"):
        outside.call(refuse, [], [shared])  # type: ignore[arg-type]


def test_on_meta_nothing_is_called() -> None:
    there = engine.zeros(3).to("meta")
    outside.call(refuse, [there], [])  # type: ignore[arg-type]
    assert outside.host(there) is there
