"""docs/scoreboard.md, from the newest result of `python -m benchmarks scoreboard`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.scoreboard import ROWS, command_of

ERRORS = ("largest", "each", "backward")
WORST = 20  # ops in the table of rounding
INTRODUCTION = """\
# Scoreboard

Attempts to break gradcli, and their results. `python -m benchmarks scoreboard` runs every command
and writes this page; `python -m benchmarks scoreboard kills rounding` runs only those two and keeps
the other figures. A full run takes hours, so CI runs a part of each.
"""
ROUNDING = """
## Rounding

The largest difference between an op's float32 result and the float64 result of the same inputs, in
units in the last place (ulp) of float32 at the largest result of the call, or at 1 where that is
larger. A result that is rounded once has at most 0.5. `each` uses the ulp of each element itself:
if large terms cancel, few correct digits remain, in every library. `backward` is for the gradients.
The {count} worst of {all}:

| op | results | largest | each | backward |
|---|---|---|---|---|
"""
PARSERS = """
## Parsers

A seed determines each mutated input. A fault is any outcome other than a value or one of gradcli's
errors, or one that takes more than 10 s or 1 GB.

| parser | inputs | refused | accepted | slowest | peak memory | faults |
|---|---|---|---|---|---|---|
"""
MUTANTS = """
## Mutants of kernels

Each mutant changes one place in the C code of the CPU's kernels. These survived:

"""


def page(rows: Mapping[str, Any]) -> str:
    """The whole page; a row that was never run says so."""
    lines = ["| attempt | result | command | run |", "|---|---|---|---|"]
    for name, row in ROWS.items():
        result = rows.get(name)
        outcome = row.say(result["figures"]) if result else "not run yet"
        of = f"{result['commit']}, {result['date']}, {_time(result['seconds'])}" if result else ""
        lines.append(f"| {row.what} | {outcome} | `{command_of(row)}` | {of} |")
    parts = [INTRODUCTION, "\n".join(lines) + "\n"]
    for name, write in PARTS.items():
        if name in rows:
            parts.append(write(rows[name]["figures"]))
    return "\n".join(parts[:2]) + "".join(parts[2:])


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rounding(figures: Mapping[str, Any]) -> str:
    worst = sorted(figures.items(), key=lambda item: (-float(item[1]["largest"]), item[0]))[:WORST]
    return _table(
        ROUNDING.format(count=len(worst), all=len(figures)),
        (
            (f"`{name}`", f"{of['elements']:,}", *(_ulp(of[key]) for key in ERRORS))
            for name, of in worst
        ),
    )


def _ulp(error: float | None) -> str:
    return "-" if error is None else f"{error:,.0f}" if error >= 100 else f"{error:.1f}"


def _parsers(figures: Mapping[str, Any]) -> str:
    return _table(
        PARSERS,
        (
            (
                row["parser"],
                *(f"{row[key]:,}" for key in ("inputs", "refused", "accepted")),
                f"{row['slowest_s']:.2f} s",
                f"{row['peak_mb']:,.0f} MB",
                str(row["faults"]),
            )
            for row in figures["parsers"]
        ),
    )


def _mutants(figures: Mapping[str, Any]) -> str:
    survivors = "".join(f"- `{line}`\n" for line in figures["survivors"])
    return MUTANTS + (survivors or "none.\n")


PARTS = {"rounding": _rounding, "parsers": _parsers, "mutants": _mutants}
