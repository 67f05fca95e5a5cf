"""Text as a terminal shows it: in cells, of which a wide character takes two.

A width of None is no terminal: nothing is wrapped or cut there, for scripts read it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from gradcli.dataclass import dataclass

CUT = "…"
# A line of a million characters is cut to so many times the room before it is measured.
_REACH = 4
# A line that must not be broken, shown where there is no terminal.
READABLE = 160
_TAB = "    "
# With less room than this beside an indent, the indent is given up.
_LEAST_ROOM = 16


def cells(text: str) -> int:
    """How many cells printable text takes: 2 for a wide character, 0 for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str, encoding: str = "utf-8") -> str:
    """Escape characters that would move the cursor or that `encoding` lacks."""
    if text.isascii() and text.isprintable():
        return text
    escaped = "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


def wrap(text: str, width: int | None, indent: int = 2) -> list[str]:
    """Break a line between words where it is wider than `width`; indent the further lines.

    Columns between wide gaps, such as figures, stay together where they fit. A word that is wider
    than the screen stays whole.
    """
    text = text if width is None else text.expandtabs()
    if width is None or cells(text) <= width:
        return [text]
    margin = " " * (indent if width - indent >= _LEAST_ROOM else min(2, indent))
    lines = [""]

    def append(gap: str, piece: str) -> None:
        if lines[-1].strip() and cells(lines[-1] + gap + piece) > width:
            lines.append(margin + piece)
        else:
            lines[-1] += gap + piece

    for gap, unit in re.findall(r"(^\s*|\s{2,})(\S+(?:\s\S+)*)", text):
        if cells((margin if lines[-1].strip() else gap) + unit) <= width:
            append(gap, unit)
            continue
        for number, word in enumerate(unit.split()):
            append(" " if number else gap, word)
    return lines


def shorten(text: str, width: int, with_end: bool = False) -> str:
    """The text, its end (or, with its end, its middle) replaced by … where it is wider."""
    if cells(text) <= width:
        return text
    end = ""
    while with_end and cells(end) < (width - 1) // 2:
        text, end = text[:-1], text[-1] + end
    while text and cells(text) + cells(end) > width - 1:
        text = text[:-1]
    return text + CUT + end


@dataclass(frozen=True)
class Window:
    """A part of a source line, and the cells in it that a caret points at."""

    text: str
    start: int
    size: int


def window(line: str, column: int, size: int, width: int | None, encoding: str = "utf-8") -> Window:
    """The part of `line` around the `size` characters from `column`, with … where it is cut."""
    cut = CUT if printable(CUT, encoding) == CUT else "..."
    room = READABLE if width is None else width
    column = min(max(column, 0), len(line))
    begin, end = max(column - _REACH * room, 0), column + _REACH * room
    more = end < len(line)
    line, column = line[begin:end], column - begin
    # A tab has no width of its own, so that the caret would miss its character.
    pieces = [_TAB if c == "\t" else printable(c, encoding) for c in line]
    sizes = [cells(piece) for piece in pieces]
    first, last = 0, len(pieces)
    if sum(sizes) > room:
        first, last = _around(sizes, column, min(column + max(size, 1), last), room, len(cut))
    span = sum(sizes[column : min(column + size, last)])
    before, after = cut if begin + first else "", cut if more or last < len(pieces) else ""
    text = before + "".join(pieces[first:last]) + after
    return Window(text, len(before) + sum(sizes[first:column]), max(span, 1))


def _around(sizes: Sequence[int], begin: int, end: int, room: int, cut: int) -> tuple[int, int]:
    """The range to show: first the marked cells, then as many to the left as to the right."""
    total = 2 * cut
    last = begin
    while last < end and total + sizes[last] <= room:
        total += sizes[last]
        last += 1
    first, grew = begin, True
    while grew:
        # An end that is reached needs no room for its cut.
        left = first > 0 and total + sizes[first - 1] <= room + cut * (last == len(sizes))
        if left:
            first -= 1
            total += sizes[first]
        right = last < len(sizes) and total + sizes[last] <= room + cut * (first == 0)
        if right:
            total += sizes[last]
            last += 1
        grew = left or right
    return first, last
