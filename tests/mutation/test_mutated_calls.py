"""Ten seconds of spoilt calls: each is refused in words, or its declared type allows the value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutate
import mutations
import pytest
from mutations import DOCUMENTED, Mutation, Outcome
from targets import Target

from gradcli.errors import OptionError

FIRST = 1_000_000  # other numbers than those of a run by hand, which begin at 0
DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def test_ten_seconds_of_spoilt_calls_end_in_words() -> None:
    report = mutate.mutated(FIRST, 2 * FIRST, seconds=10)
    assert [str(result) for result in report.wrong] == []
    assert report.counts["refused"] > 100


def test_what_is_accepted_silently_has_a_row_of_the_differences() -> None:
    rows = DIFFERENCES.read_text(encoding="utf-8")
    assert [text for text in DOCUMENTED.values() if text not in rows] == []


def test_a_number_makes_the_same_call_each_time() -> None:
    for number in range(50):
        (target, one), (again, same) = mutations.mutate(number), mutations.mutate(number)
        assert (target.name, one.argument) == (again.name, same.argument)
        assert type(one.value) is type(same.value)


def fail(error: Exception) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("call", "legal", "outcome"),
    [
        (fail(OptionError("roll: shifts must be a whole number, got 'x'")), False, "refused"),
        (fail(OptionError("roll: what a mistake")), False, "vague"),
        (fail(OptionError("shifts must be a whole number")), False, "vague"),
        (fail(OptionError("roll: shifts" + "9" * 1000)), True, "vague"),
        (fail(AttributeError("no 'ndim'")), False, "raw"),
        (fail(OverflowError("too large")), True, "raw"),
        (fail(TypeError("unsupported operand")), False, "raw"),
        (fail(TypeError("roll() got an unexpected keyword argument 'shifts'")), False, "refused"),
        (lambda *args, **named: None, False, "silent"),
        (lambda *args, **named: None, True, "allowed"),
    ],
)
def test_each_outcome_is_told_from_the_others(
    call: Callable[..., Any], legal: bool, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("roll", call, lambda: ([], {}), {"shifts": int})
    spoilt = Mutation("shifts", "x", [], {"shifts": "x"}, legal)
    monkeypatch.setattr(mutations, "mutate", lambda number: (target, spoilt))
    assert mutations.run(0).outcome == outcome


DYING = """\
import os, sys, time
sys.path.insert(0, {folder!r})
import mutate
plain = mutate.run
mutate.run = lambda number: {death} if number == 3 else plain(number)
mutate.main()
"""


@pytest.mark.parametrize(
    ("death", "says"), [("os.abort()", "SIGABRT"), ("time.sleep(60)", "no answer in 10 s")]
)
def test_a_crash_and_an_endless_call_are_found_and_the_next_calls_run(
    death: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "PATIENCE", 10.0)
    program = tmp_path / "dying.py"
    program.write_text(DYING.format(folder=str(Path(mutate.__file__).parent), death=death))
    report = mutate.mutated(0, 6, seconds=60, program=str(program))
    found = [result for result in report.wrong if says in result.message]
    assert [result.number for result in found] == [3]
    assert sum(report.counts.values()) == 6
