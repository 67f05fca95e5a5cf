"""Mutants: texts of kernels with one barrier less, or one bound too loose."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradcli.engine.device.gpu.source import CSRC, file_of

FOLDER = CSRC / "gpu"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_WAIT = re.compile(r"\b(?:(?:BARRIER|WARP_SYNC|copies_end)\(\)|COPIES_LEFT\([^;]*\));")
_BOUND = re.compile(r" (<|>=) ")
# Comparisons that are no bounds, and bounds that are no mistake when loose, by a part of the line.
NO_BOUNDS = {
    "if (rows.from >= rows.to || columns.from": "no window of a valid call is empty",
    "tap < window && tap < every && a.taps == 0": "a tap is found before, or there is none",
    "(!WINS(best, ORDER, v) && (p) < (place))": "no two members have the same place",
    "width < count; width *= 2": "merging what is one run already changes nothing",
    "const uint carry =": "arithmetic",
    "v >= high ? low : v": "what rounding may give, once in millions of draws",
    "keep = words.word[w] >= below": "a threshold",
    "first < rows; first += GDIM.x * group": "rows are looked at once more inside",
    "i < call.m && keys[i] == key": "the last key is another one's",
    "k < end + DEPTH; k += DEPTH": "one more slice, of zeros",
    "x >= high ? NAME(most)": "a number, and that one gives the same",
    "high += low < other": "arithmetic",
    "VALUE_OF(b) < VALUE_OF(a)": "of two that are equal either may stay",
    "a != a && (b == b || at < other)": "no two pixels have the same place",
    "a > b || (a == b && at < other)": "no two pixels have the same place",
    "step < BDIM.x; step *= 2": "nothing lies a whole block before",
}
_PAIRS = {"(": ")", "[": "]"}
# What ends an operand of a comparison, when read to the left and to the right.
_LEFT_END = re.compile(r"(?:&&|\|\||[=,;?:{]|\breturn)\s*$")
_RIGHT_END = re.compile(r"\s*(?:&&|\|\||[,;?:{])")


@dataclass(frozen=True)
class Mutant:
    """A file of csrc/gpu with one place changed."""

    path: Path
    begin: int
    end: int
    new: str

    @property
    def rank(self) -> bytes:
        """A number by chance, the same as long as the line is: by it mutants are sampled."""
        return hashlib.sha256(str(self).partition(": ")[2].encode()).digest()

    @property
    def text(self) -> str:
        """The file as it would be."""
        text = self.path.read_text(encoding="utf-8")
        return text[: self.begin] + self.new + text[self.end :]

    def __str__(self) -> str:
        text = self.path.read_text(encoding="utf-8")
        line = text.count("\n", 0, self.begin) + 1
        old = " ".join(text[self.begin : self.end].replace("\\\n", " ").split())
        begin, end = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.end)
        shown = " ".join(text[begin:end].replace("\\\n", " ").split()).rstrip(" \\")
        return f"{self.path.name}:{line}: `{old}` -> `{self.new}` in `{shown}`"


def _operand(text: str, at: int, step: int) -> int:
    """Where the operand that begins at `at` ends, read to the left (step -1) or right (1)."""
    opening = {v: k for k, v in _PAIRS.items()} if step < 0 else _PAIRS
    waiting: list[str] = []
    while 0 <= at < len(text):
        letter = text[at]
        if waiting and letter == waiting[-1]:
            waiting.pop()
        elif letter in opening:
            waiting.append(opening[letter])
        elif not waiting and _ends(text, at, step):
            break
        at += step
    return at if step > 0 else at + 1


def _ends(text: str, at: int, step: int) -> bool:
    if text[at] in ")]" if step > 0 else text[at] in "([":
        return True
    around = text[: at + 1][-8:] if step < 0 else text[at : at + 8]
    return bool(_LEFT_END.search(around) if step < 0 else _RIGHT_END.match(around))


def _plain(text: str) -> str:
    return re.sub(r"[()\s\\]", "", text)


def _is_choice(left: str, right: str, after: str) -> bool:
    """`a < b ? a : b` gives the same with `<=`."""
    found = re.match(r"\s*\?\s*([^:;]+?)\s*:\s*([^;,]+)", after)
    if not found:
        return False
    first, second, a, b = (_plain(x) for x in (found[1], found[2], left, right))
    return (first == a and second.startswith(b)) or (first == b and second.startswith(a))


def _of_values(left: str, right: str) -> bool:
    """Comparisons of what indexes nothing: floats, signs, names of ways to do something."""
    if re.search(r"\d\.\d|\(float\)", left + right):
        return True
    return bool(re.fullmatch(r"\s*([01]|[A-Z]+_[A-Z_]+)\s*", right)) and " for " not in left


def _bounds(path: Path, text: str) -> Iterator[Mutant]:
    for found in _BOUND.finditer(text):
        begin = _operand(text, found.start() - 1, -1)
        end = _operand(text, found.end(), 1)
        left, right = text[begin : found.start()], text[found.end() : end]
        line_end = text.find("\n", found.end())
        whole = text[text.rfind("\n", 0, found.start()) + 1 : line_end]
        if any(part in whole for part in NO_BOUNDS):
            continue
        if _of_values(left, right) or _is_choice(left, right, text[end:]):
            continue
        loose = {"<": "<=", ">=": ">"}[found[1]]
        yield Mutant(path, found.start(1), found.end(1), loose)
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        if not re.search(r"\bfor \([^{]*$", line):  # without its bound a loop would not end
            yield Mutant(path, begin, end, "false" if found[1] == ">=" else "true")


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    text = _COMMENT.sub(lambda c: re.sub(r"[^\n]", " ", c[0]), path.read_text(encoding="utf-8"))
    waits = [Mutant(path, found.start(), found.end(), ";") for found in _WAIT.finditer(text)]
    return waits + list(_bounds(path, text))


def all_mutants() -> list[Mutant]:
    """Those of every file but the preludes (prelude_mutants.py), and maths of numbers."""
    skipped = {"prelude_cuda.h", "prelude_metal.h", "maths.h"}
    files = sorted(p for p in FOLDER.rglob("*.*") if p.name not in skipped)
    return [mutant for path in files for mutant in mutants_of(path)]


def files_of(family: str) -> set[Path]:
    """The files that a family's text is made of."""
    seen: set[Path] = set()
    waiting = [file_of(family)]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            text = path.read_text(encoding="utf-8")
            waiting += [(path.parent / name).resolve() for name in _INCLUDED.findall(text)]
    return seen
