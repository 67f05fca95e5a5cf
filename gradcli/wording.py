"""Words that depend on a number, and lists that are cut; the one place for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# How many names a sentence lists before it says that there are more.
MANY = 10


def quantity(number: float | str, noun: str, plural: str = "", form: str = "") -> str:
    """`1 file`, `2 files`, `0 files`, `2 or 3 files`; `form` formats the number, such as `,`."""
    return f"{number:{form}} {noun if number in (1, '1') else plural or _plural(noun)}"


def verb(number: float, singular: str = "is", plural: str = "are") -> str:
    """The verb for a quantity: `is` for 1, else `are`."""
    return singular if number == 1 else plural


def byte_size(count: int) -> str:
    """A number of bytes for messages, such as 1.3 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return quantity(count, "byte")


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")) and not noun.endswith("epoch"):  # its ch is a k
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def join_words(names: Iterable[str], most: int = MANY, joint: str = ", ") -> str:
    """The names with commas between them, and `...` where there are more than `most`."""
    first = list(names)
    return joint.join([*first[:most], "..."] if len(first) > most else first)


def further(problems: Sequence[str]) -> list[str]:
    """The notes below a message that names the first of several problems: the next few."""
    more = len(problems) - 1 - MANY
    return [*problems[1 : MANY + 1], *([f"and {more} more"] if more > 0 else [])]
