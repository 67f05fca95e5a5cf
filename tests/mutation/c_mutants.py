"""Mutants of C text: one operator, number, guard or statement changed, wherever there is code.

Comments, strings and preprocessor lines make none; the bodies of macros with arguments do, because
many kernels are written as such. The text is laid out by clang-format: ` * ` multiplies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """The characters begin..end of a file, and what stands there instead."""

    file: str  # relative to the project
    operator: str
    begin: int
    end: int
    new: str

    def line(self, text: str) -> int:
        """The number of the line it changes, from 1."""
        return text.count("\n", 0, self.begin) + 1

    def applied(self, text: str) -> str:
        """The file as it would be."""
        return text[: self.begin] + self.new + text[self.end :]

    def whole_line(self, text: str) -> str:
        """That line, without its margins."""
        begin, end = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.begin)
        return text[begin:end].rstrip(" \\").strip()

    def key(self, text: str) -> str:
        """The file, the line and the change: what a list of mutants says."""
        old = " ".join(text[self.begin : self.end].split())
        return f"{self.file}: {self.whole_line(text)} | {self.operator}: {old} -> {self.new}"


Change = tuple[str, int, int, str]  # operator, begin, end, new text

_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_MACRO = re.compile(r"[ \t]*#[ \t]*define \w+\([^)]*\)")

_SWAPS = {
    "order": {"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    "equality": {"==": "!=", "!=": "=="},
    "sum": {"+": "-", "-": "+"},
    "product": {"*": "+", "/": "*", "%": "/"},
    "logic": {"&&": "||", "||": "&&"},
    "update": {"+=": "-=", "-=": "+=", "*=": "+="},
}
_INFIX = re.compile(r"(?<=[ \n])(<=|>=|==|!=|&&|\|\||[-+*]=|[<>*/%]|[+-])(?=[ \n])")
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.])")
_REAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e-?\d+)f?(?![\w.])")
_NOT = re.compile(r"!(?=[\w(])")
_MINUS = re.compile(r"(?:(?<=[(\[?:=,] )|(?<=[(\[!])|(?<=return ))-(?=[\w(])")
_EXTREME = re.compile(r"\b(?:gc_|m_f|f|v)(min|max)f?\b(?=\()")
_NAN = re.compile(r"(\(\w+\)|\b[\w.]+(?:\[[^\]]*\])?) ([!=])= \1(?![\w.\[])")
_STRIDE = re.compile(r"(?<=[.>])(stride|shape)(?=\[)")
_GUARD = re.compile(r"\b(?:if|GC_REQUIRE)(?: (?=\()|(?=\())")
_LEAVES = re.compile(r"\s*(?:\{\s*)?(?:return|continue|break|goto)\b")
_STATEMENT = re.compile(
    r"(?:(?<=[;{})])|(?<=\belse)|(?<=\\\n)|^)\s*"
    r"(?!for\b)(?P<it>(?:\*?[A-Za-z_][\w.>\[\]()*+/% -]*? (?:[-+*/|&^]|<<|>>)?= [^;{}]+|"
    r"[A-Za-z_][\w.>\[\]-]*(?:\+\+|--)|(?!(?:if|for|while|switch|return|NAME)\b)[A-Za-z_]\w*"
    r"\([^;{}]*\));)",
    re.MULTILINE,
)
_DECLARES = re.compile(
    r"^(?:(?:const|static|struct|unsigned) )*\w+(?:\([^)]*\))? \**(?:const )?\w+(?:\[[^\]]*\])* = "
)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _directive(match: re.Match[str]) -> str:
    """Blanks, but for the body of a macro with arguments; the ends of its lines count as spaces."""
    macro = _MACRO.match(match[0])
    if not macro:
        return _blank(match)
    return " " * macro.end() + match[0][macro.end() :].replace("\\\n", " \n")


def code(text: str) -> str:
    """The text with blanks in the place of whatever is no code, of the same length."""
    shown = _HIDDEN.sub(_blank, text)
    return _DIRECTIVE.sub(_directive, shown)


def _closing(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return len(text)


def _infix(text: str) -> Iterator[Change]:
    for match in _INFIX.finditer(text):
        for operator, swap in _SWAPS.items():
            if match[1] in swap:
                yield operator, match.start(), match.end(), swap[match[1]]


def _numbers(text: str) -> Iterator[Change]:
    for match in _WHOLE.finditer(text):
        value = int(match[0])
        for other in (value - 1, value + 1):
            if other >= 0:
                yield "number", *match.span(), str(other)
    for match in _REAL.finditer(text):
        yield "number", *match.span(), f"({match[0]} + 1)"


def _signs(text: str) -> Iterator[Change]:
    for pattern in (_NOT, _MINUS):
        for match in pattern.finditer(text):
            yield "negation", *match.span(), ""


def _names(text: str) -> Iterator[Change]:
    for match in _EXTREME.finditer(text):
        yield "extreme", *match.span(1), {"min": "max", "max": "min"}[match[1]]
    for match in _STRIDE.finditer(text):
        yield "stride", *match.span(), {"stride": "shape", "shape": "stride"}[match[0]]
    for match in _NAN.finditer(text):
        yield "NaN", *match.span(), "false" if match[2] == "!" else "true"


def _guards(text: str) -> Iterator[Change]:
    """A refusal that never is, an early end that never comes, a branch that is always taken."""
    for match in _GUARD.finditer(text):
        end = _closing(text, match.end())
        if match[0].startswith("GC_"):
            yield "guard", match.start(), end, "(void)0"
        else:
            leaves = _LEAVES.match(text, end)
            yield "guard", match.end() + 1, end - 1, "false" if leaves else "true"


def _statements(text: str) -> Iterator[Change]:
    for match in _STATEMENT.finditer(text):
        whole = match["it"]
        if not _DECLARES.match(whole) and not whole.startswith("GC_REQUIRE"):
            yield "statement", *match.span("it"), ";"


_WAYS = (_infix, _numbers, _signs, _names, _guards, _statements)
OPERATORS = (*_SWAPS, "number", "negation", "extreme", "stride", "NaN", "guard", "statement")


def mutants_of(file: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    shown = code(text)
    nan = {match.span() for match in _NAN.finditer(shown)}
    changes = (change for way in _WAYS for change in way(shown))
    listed = [
        Mutant(file, *change)
        for change in changes
        if change[0] != "equality" or not any(a < change[1] < b for a, b in nan)
    ]
    return sorted(set(listed), key=lambda one: (one.begin, one.end, one.new))
