"""Entries: the names of the kernels in a module's text, without a compiler.

As much of a preprocessor as that takes: conditions, macros with parameters, `##`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.launch import KernelModule
from gradcli.engine.device.gpu.source import module_text

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEFINE = re.compile(r"(\w+)(?:\(([^)]*)\))?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"defined\((\w+)\)")
_KERNEL = "KERNEL"


@cache
def kernels_of(module: KernelModule) -> tuple[str, ...]:
    """The names of a module's kernels."""
    reader = _EntryParser()
    text = _COMMENT.sub(" ", module_text(module, "")).replace("\\\n", " ")
    return tuple(reader.kernels(text))


@dataclass
class _EntryParser:
    """Macros as far as a text is read, and whether each condition around a line holds."""

    macros: dict[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    conditions: list[bool] = field(default_factory=list)

    def kernels(self, text: str) -> Iterator[str]:
        """The kernels of a text, in its order."""
        waiting: list[str] = []
        for line in text.split("\n"):
            if line.lstrip().startswith("#"):
                yield from self._find("\n".join(waiting))
                waiting = []
                self._directive(*line.lstrip()[1:].strip().partition(" ")[::2])
            elif all(self.conditions):
                waiting.append(line)
        yield from self._find("\n".join(waiting))

    def _directive(self, name: str, rest: str) -> None:
        if name in ("if", "ifdef", "ifndef"):
            words = _DEFINED.findall(rest) or [rest.strip()]
            holds = any(word in self.macros for word in words)
            self.conditions.append(holds != (name == "ifndef" or rest.startswith("!")))
        elif name == "else":
            self.conditions[-1] = not self.conditions[-1]
        elif name == "endif":
            self.conditions.pop()
        elif all(self.conditions) and name == "undef":
            self.macros.pop(rest.strip(), None)
        elif all(self.conditions) and name == "define":
            self._define(rest)

    def _define(self, rest: str) -> None:
        match = _DEFINE.match(rest)
        assert match is not None, rest
        parameters = [parameter.strip() for parameter in (match[2] or "").split(",")]
        self.macros[match[1]] = parameters, match[3]

    def _find(self, text: str) -> Iterator[str]:
        """The kernels that a text declares, by itself or by its macros."""
        at = 0
        while match := _WORD.search(text, at):
            name, at = match[0], match.end()
            if not text[at:].lstrip().startswith("("):
                continue
            arguments, end = _arguments(text, text.index("(", at))
            if name == _KERNEL:
                yield self._plain(arguments[0])
            elif self._declares([name, *_WORD.findall(" ".join(arguments))]):
                yield from self._find(self._replaced(name, arguments))
            else:
                continue
            at = end

    def _declares(self, words: Sequence[str], above: frozenset[str] = frozenset()) -> bool:
        """Whether one of these is a macro behind which a kernel stands."""
        if words[0] not in self.macros:
            return False
        behind = [word for word in words if word in self.macros and word not in above]
        return any(
            _KERNEL in (inside := _WORD.findall(self.macros[word][1]))
            or any(self._declares([word], above | {*behind}) for word in inside)
            for word in behind
        )

    def _replaced(self, name: str, arguments: Sequence[str]) -> str:
        parameters, body = self.macros[name]
        values = dict(zip(parameters, arguments, strict=False))
        body = _WORD.sub(lambda word: values.get(word[0], word[0]), body)
        return re.sub(r"\s*##\s*", "", body)

    def _plain(self, name: str) -> str:
        """A kernel's name, where it is written as a macro."""
        match = _WORD.match(name)
        if match is None or "(" not in name:
            return name
        return self._replaced(match[0], _arguments(name, name.index("("))[0])


def _arguments(text: str, begin: int) -> tuple[list[str], int]:
    """What stands between the brackets that open at `begin`, and where they are closed."""
    parts, depth = [""], 0
    for at in range(begin, len(text)):
        letter = text[at]
        depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            return [part.strip() for part in parts], at + 1
        if depth == 1 and letter == ",":
            parts.append("")
        elif at > begin:
            parts[-1] += letter
    return [part.strip() for part in parts], len(text)
