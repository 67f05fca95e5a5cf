"""The scoreboard reads the figures of its commands, and its page says what was last measured."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results, scoreboard, scoreboard_page

ROOT = Path(__file__).resolve().parents[2]
PARSER = {"parser": "npy", "inputs": 9, "refused": 7, "accepted": 2, "slowest_s": 0.1}
PARSER |= {"peak_mb": 80.0, "faults": 0}
ROUNDED = {"elements": 4, "largest": 0.5, "each": 300.0, "backward": None, "differs": []}
OUTPUTS = {
    "gradients": (
        '{"ops": 3, "cases": 40, "failed": []}',
        "40 cases of 3 ops, 0 wrong",
    ),
    "second-gradients": (
        '{"ops": 3, "cases": 40, "failed": ["exp"]}',
        "40 cases of 3 ops, 1 wrong",
    ),
    "ops": ("....\n1200 passed in 3.00s", "1,200 tests passed, 0 failed"),
    "parity": ("F\n1 failed, 7 passed in 1s", "7 tests passed, 1 failed"),
    "rounding": (json.dumps({"exp": ROUNDED}), "1 ops; the worst is exp with 0.5 ulp"),
    "kills": (
        "  1/2 killed: equal\n1 of 2 equal to ab12",
        "1 of 2 ended in the same weights, bit for bit",
    ),
    "faults": (
        "2 of 2 equal to ab12; 115 calls",
        "2 of 2 ended in the same weights, bit for bit",
    ),
    "parsers": (
        json.dumps(PARSER) + "\n" + json.dumps({**PARSER, "parser": "csv", "slowest_s": 2.0}),
        "18 damaged inputs of 2 parsers, 0 faults; the slowest took 2.0 s, the largest 80 MB",
    ),
    "calls": (
        '{"counts": {"refused": 5, "allowed": 2, "raw": 1}, "wrong": ["x"]}',
        "8 calls: 5 refused in a sentence, 2 allowed by their types, 1 wrong, reports of a "
        "sanitizer among them",
    ),
    "mutants": (
        '{"mutants": 50, "caught": 48, "equivalent": 3, "survivors": ["a.h:1", "b.h:2"]}',
        "48 of 50 caught, 3 equivalent",
    ),
    "coverage": (
        '{"c": {"lines": 200, "ran": 150}, "python": {"lines": 1000, "ran": 999}}',
        "C: 75.0 % of 200 lines; Python: 99.9 % of 1,000 lines",
    ),
}


@pytest.mark.parametrize("name", scoreboard.ROWS)
def test_the_figures_of_a_command_are_read_and_said(name: str) -> None:
    row = scoreboard.ROWS[name]
    output, sentence = OUTPUTS[name]
    assert row.say(row.read(output)) == sentence


@pytest.mark.parametrize("name", scoreboard.ROWS)
def test_a_command_without_figures_is_no_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = subprocess.CompletedProcess([], 1, "no such thing\n", "it broke")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: silent)
    with pytest.raises(ChildProcessError, match="it broke"):
        scoreboard.measure(name, print)


def test_the_page_is_that_of_the_newest_result() -> None:
    newest = results.newest(results.FOLDER, "scoreboard")
    assert newest is not None
    page = (ROOT / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    assert page == scoreboard_page.page(newest["rows"])


def test_the_page_shows_every_row_and_what_was_never_run() -> None:
    rows: dict[str, Any] = {
        name: {"figures": row.read(OUTPUTS[name][0]), "commit": "abc", "date": "2026-01-02"}
        | {"seconds": 90}
        for name, row in scoreboard.ROWS.items()
        if name != "kills"
    }
    page = scoreboard_page.page(rows)
    assert page.count("not run yet") == 1
    assert page.count("abc, 2026-01-02, 90 s") == len(rows)
    assert "| `exp` | 4 | 0.5 | 300 | - |" in page
    assert "- `a.h:1`\n- `b.h:2`\n" in page
    assert "| csv | 9 | 7 | 2 | 2.00 s | 80 MB | 0 |" in page
