"""Arguments of a captured step: read where they lie when that is safe, copied when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F
from gradcli.errors import OptionError, ShapeError

ROWS = 67  # of 67 x 67 floats: large enough to be read in place


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def captured(step: Any) -> Any:
    return engine.capture(step, on_fallback=refuse)


def own_memory(step: Any) -> list[Any]:
    """What the program's copies of the arguments hold."""
    (entry,) = next(iter(step._entries.values()))
    return [array.tolist() for array in entry.inputs]


def test_a_large_argument_is_read_where_it_lies_and_a_small_one_is_copied() -> None:
    step = captured(lambda x, y: (x @ x).sum() + y)
    for _ in range(2):
        step(engine.zeros(ROWS, ROWS), engine.tensor(1.0))
    result = step(engine.eye(ROWS), engine.tensor(2.0))
    assert result.item() == ROWS + 2.0
    large, small = own_memory(step)
    assert small == 2.0
    assert max(map(max, large)) == 0.0  # untouched since the recording


def test_a_training_steps_batch_is_read_where_it_lies() -> None:
    engine.manual_seed(0)
    model = nn.Sequential(nn.Linear(ROWS, 33), nn.ReLU(), nn.Linear(33, 5))
    chosen = optim.Adam(model.parameters(), lr=0.01)

    def train(x: Any, y: Any) -> Any:
        chosen.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        chosen.step()
        return loss

    step = captured(train)
    x, y = engine.randn(7, ROWS, ROWS), engine.randint(0, 5, (7, ROWS))
    step.scan(x, y)
    second = own_memory(step)[0]
    assert second == x[1].tolist()


@pytest.mark.parametrize("many", [False, True], ids=["one call", "scan"])
def test_an_argument_that_the_step_changes_is_copied_first(many: bool) -> None:
    kept = engine.ones(ROWS, ROWS)

    def grow(x: Any) -> Any:
        kept.copy_(kept * 2.0)
        return (x + 0.0).sum() * 1.0, kept.sum()

    step = captured(grow)
    for _ in range(3):
        step(engine.zeros(ROWS, ROWS))
    before = kept.sum().item()
    # The same memory under another name: what the step sees of it is from before its change.
    argument = kept.detach()
    given = step.scan(argument.reshape(1, ROWS, ROWS)) if many else step(argument)
    assert given[0].reshape(()).item() == before
    assert given[1].reshape(()).item() == 2 * before


def test_a_copy_after_reading_in_place_and_back() -> None:
    kept = engine.zeros(ROWS, ROWS)

    def add(x: Any) -> Any:
        kept.copy_(kept + x)
        return kept.sum() + x.sum()

    step = captured(add)
    one = engine.full((ROWS, ROWS), 1.0)
    expected = 0.0
    for argument in (one, one, one, kept, one, kept):
        given = argument.sum().item()
        expected += given
        assert step(argument).item() == expected + given


def test_an_argument_that_the_step_keeps_shows_the_last_one_given() -> None:
    seen: dict[str, Any] = {}

    def keep(x: Any) -> Any:
        seen["x"] = x
        return x.sum()

    step = captured(keep)
    for value in (1.0, 2.0, 3.0, 4.0):
        step(engine.full((ROWS, ROWS), value))
        assert seen["x"][0, 0].item() == value


def test_a_view_of_an_argument_that_only_the_first_step_keeps_is_looked_after() -> None:
    seen: list[Any] = []

    def keep_once(x: Any) -> Any:
        if not seen:
            seen.append(x[1:])
        return x.sum()

    step = captured(keep_once)
    for value in (1.0, 2.0, 3.0, 4.0):
        step(engine.full((ROWS, ROWS), value))
    assert seen[0].shape == (ROWS - 1, ROWS)
    (entry,) = next(iter(step._entries.values()))
    assert entry.private == []
    assert own_memory(step)[0][1:] == seen[0].tolist()


def test_large_rows_are_read_where_they_lie_beside_numbers_that_differ_from_row_to_row() -> None:
    def step(x: Any) -> Any:
        return F.dropout(x, 0.5).sum()

    rows = engine.randn(5, ROWS, ROWS)
    engine.manual_seed(3)
    eager = [step(row).item() for row in rows]
    engine.manual_seed(3)
    replayed = captured(step)
    assert replayed.scan(rows).tolist() == eager
    assert own_memory(replayed)[0] == rows[1].tolist()


def test_an_argument_that_comes_back_is_the_one_that_was_given() -> None:
    step = captured(lambda x: (x, x.sum()))
    for value in (1.0, 2.0, 3.0, 4.0):
        same, _ = step(engine.full((ROWS, ROWS), value))
        assert same[0, 0].item() == value


def test_a_part_of_a_larger_tensor_is_read_at_its_place() -> None:
    step = captured(lambda x: x @ x)
    all_of_it = engine.randn(5, ROWS, ROWS)
    for i in range(5):
        assert step(all_of_it[i]).tolist() == (all_of_it[i] @ all_of_it[i]).tolist()
    turned = all_of_it[1].transpose(0, 1)
    assert step(turned).tolist() == (turned @ turned).tolist()


def test_a_captured_step_inside_another_belongs_to_the_outer_one() -> None:
    inner = captured(lambda x: x * 3.0)
    outer = captured(lambda x: inner(x) + 1.0)
    for value in (1.0, 2.0, 3.0, 4.0):
        inner(engine.full((4,), value))  # known by itself, too
        assert outer(engine.full((4,), value)).tolist() == [3.0 * value + 1.0] * 4
    scanning = captured(lambda x: inner.scan(x).sum())
    for value in (1.0, 2.0, 3.0, 4.0):
        assert scanning(engine.full((2, 4), value)).item() == 24.0 * value


def test_a_replay_counts_as_a_change_of_what_it_writes() -> None:
    weight = engine.ones(3, requires_grad=True)
    with engine.no_grad():
        step = captured(lambda x: weight.copy_(weight * x).sum())
        for _ in range(3):
            step(engine.tensor(2.0))
        with engine.enable_grad():
            loss = (weight * weight).sum()
        step(engine.tensor(2.0))
    with pytest.raises(Exception, match="changed in place"):
        loss.backward()


def test_scan_wants_at_least_one_row() -> None:
    step = captured(lambda x: x.sum())
    with pytest.raises(ShapeError, match="at least one row"):
        step.scan(engine.zeros(0, 3))


def test_only_a_function_can_be_captured() -> None:
    with pytest.raises(OptionError, match="capture: step must be a function, got a"):
        engine.capture(engine.zeros(3))  # type: ignore[arg-type]
