"""docs/bad-inputs.md names every row, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs" / "bad-inputs.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT))


def functions_in(name: str) -> set[tuple[str, str]]:
    [path] = HERE.parent.rglob(name)
    tests = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {(name, test) for test in tests}


def test_every_named_test_exists() -> None:
    assert set().union(*(functions_in(name) for name, _ in NAMED)) >= NAMED


def test_every_test_of_a_bad_input_is_named() -> None:
    there = {p.name for p in HERE.glob("test_bad_inputs_*.py")} - {Path(__file__).name}
    assert set().union(*(functions_in(name) for name in there)) <= NAMED


def test_every_row_is_there() -> None:
    rows: set[int] = set()
    for first, last in re.findall(r"^\| (\d+)(?:-(\d+))? \|", TEXT, re.MULTILINE):
        rows |= set(range(int(first), int(last or first) + 1))
    assert rows == {*range(1, 114)}
