"""Values of files that anybody may have written, as what they should be; and figures for people."""

from __future__ import annotations

from typing import Any

from gradcli.report.run_files import number
from gradcli.wording import byte_size

LARGE = 1e7  # from here on a figure is a power of ten
MOST_TEXT = 20_000  # letters
NO_FIGURES = ("nan", "inf", "-inf", "not finite")


def mapping(value: object) -> dict[str, Any]:
    """An object; empty where the value is none."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A list; empty where the value is none."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """What a value says, on a page: bounded, and empty for null."""
    if value is None:
        return ""
    if isinstance(value, float):
        return figure(value)
    words = value if isinstance(value, str) else str(value)
    return words if len(words) <= MOST_TEXT else words[:MOST_TEXT] + "..."


def whole(value: object) -> int | None:
    """A whole number that may count something; None for all else."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def figure(value: object) -> str:
    """A figure in five digits or fewer: 0.9867, 12.500, 1.2e-07; a dash where it is none."""
    finite = number(value)
    if finite is None:
        return value if isinstance(value, str) and value in NO_FIGURES else "-"
    if finite == 0 or 1e-3 <= abs(finite) < LARGE:
        digits = max(0, 4 - len(f"{abs(finite):.0f}") + 1) if abs(finite) < 1e3 else 0
        return f"{finite:,.{digits}f}"
    return f"{finite:.3g}"


def count(value: object) -> str:
    """A whole number with commas; a dash where it is none."""
    amount = whole(value)
    return "-" if amount is None else f"{amount:,}"


def size(value: object) -> str:
    """Bytes for people; a dash where they are none."""
    number_of_bytes = whole(value)
    return "-" if number_of_bytes is None else byte_size(number_of_bytes)


def percent(share: float) -> str:
    """A share of 1 as a percentage."""
    return f"{100 * share:.1f} %"


def duration(value: object) -> str:
    """Seconds for people: 0.3 s, 2 min 5 s, 3 h 10 min."""
    seconds = number(value)
    if seconds is None or seconds < 0:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def moment(value: object) -> str:
    """`2026-01-02 03:04` of an ISO time."""
    return text(value)[:16].replace("T", " ")
