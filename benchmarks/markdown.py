"""Tables in Markdown, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """In Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def ms(row: Mapping[str, Any] | None) -> str:
    """A row's median; a star where it is doubtful."""
    if row is None or "ms" not in row:
        return "-"
    star = "\\*" if row.get("noisy") or not row.get("same_course", True) else ""
    return f"{number(row['ms'])}{star}"


def number(value: float) -> str:
    """Three digits that count, never an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    places = 2
    while value and round(value, places) < 10 ** (2 - places) and places < 6:
        places += 1
    return f"{value:.{places - (value >= 10)}f}"


def as_times(ratio: float | None, limit: float | None = None, doubtful: bool = False) -> str:
    """A ratio, and whether it reaches its limit."""
    if ratio is None:
        return "-"
    reached = "?" if doubtful else "yes" if limit is not None and ratio >= limit else "no"
    goal = "" if limit is None else f" ({limit:g}, {reached})"
    return f"{number(ratio) if ratio >= 100 or ratio < 0.1 else format(ratio, '.2f')}x{goal}"
