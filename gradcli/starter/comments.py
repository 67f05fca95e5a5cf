"""A config with a comment at each key: the words of the schema, behind what stands there."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from gradcli.starter.meanings import (
    CHOICES,
    FIXED,
    NAMES,
    meaning,
    of_section,
    sentence,
    short,
)

COLUMN = 40  # where comments begin, if what they belong to leaves room
WIDTH = 100
_ITEM = re.compile(r"  - \{?(\w+)")


def commented(text: str) -> str:
    """The config with each key of each section on a line of its own, with a comment.

    The values and comments of the config stay as they are.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "a config is a map"
    lines = text.splitlines()
    begins = [key.start_mark.line for key, _ in root.value]
    ends = [*begins[1:], len(lines)]
    output = lines[: begins[0]]
    for (key, value), begin, end in zip(root.value, begins, ends, strict=True):
        output += _Section(text, lines[begin:end], begin, key.value, value).lines()
    return "\n".join(output) + "\n"


class _Section:
    """One key of the top level and what stands below it."""

    def __init__(
        self, text: str, lines: list[str], begin: int, name: str, value: yaml.Node
    ) -> None:
        self.text = text
        self.own = lines
        self.begin = begin
        self.name = name
        self.value = value

    def lines(self) -> Iterator[str]:
        """The lines with their comments."""
        keyed = self.name in CHOICES or self.name in FIXED
        if keyed and isinstance(self.value, yaml.MappingNode):
            yield from self._keys(self.value)
        elif isinstance(self.value, yaml.ScalarNode) and self.name in CHOICES:
            yield from self._first(self._choice_comment(self.value.value))
        else:
            yield from self._first(short(of_section(self.name)))

    def _first(self, comment: str) -> Iterator[str]:
        yield from beside(self.own[0], comment)
        if self.name == "model":
            yield from _of_layers(self.own[1:])
        else:
            yield from self.own[1:]

    def _keys(self, section: yaml.MappingNode) -> Iterator[str]:
        """Each key on a line; a map in braces gets a line for each key."""
        yield from beside(f"{self.name}:", short(of_section(self.name)))
        pairs = section.value
        choice = next((value.value for key, value in pairs if key.value == "name"), "")
        begins = [key.start_mark.line - self.begin for key, _ in pairs]
        ends = [*begins[1:], len(self.own)]
        for (key, value), begin, end in zip(pairs, begins, ends, strict=True):
            is_name = key.value == "name" and self.name in CHOICES
            comment = (
                self._choice_comment(choice) if is_name else short(self._of(choice, key.value))
            )
            if section.flow_style:
                text = self.text[value.start_mark.index : value.end_mark.index]
                yield from beside(f"  {key.value}: {text}", comment)
            elif value.start_mark.line != value.end_mark.line:
                yield from [*_above("  ", comment), *self.own[begin:end]]
            else:
                yield from beside(self.own[begin], comment)
                yield from self.own[begin + 1 : end]
        if section.flow_style:
            yield from self.own[section.end_mark.line - self.begin + 1 :]

    def _of(self, choice: str, key: str) -> str:
        make = FIXED.get(self.name) or self._find_make(choice)
        return meaning(make, key) if make else ""

    def _choice_comment(self, choice: str) -> str:
        make = self._find_make(choice)
        return short(sentence(make)) if make else ""

    def _find_make(self, choice: str) -> Callable[..., Any] | None:
        return CHOICES[self.name].get(choice)


def _of_layers(lines: list[str]) -> Iterator[str]:
    """The layers of a model; of each kind the first one is explained."""
    explained: set[str] = set()
    for line in lines:
        item = _ITEM.match(line)
        kind = item[1] if item else ""
        layer = NAMES["layer"].get(kind) if kind not in explained else None
        explained.add(kind)
        yield from beside(line, short(sentence(layer))) if layer else [line]


def beside(line: str, comment: str) -> list[str]:
    """The line with a comment behind it, or above where it has one or leaves no room."""
    if not comment:
        return [line]
    if re.search(r"\s#", line):
        return [line] if '"' not in line else [*_above(line, comment), line]
    together = f"{line:<{COLUMN}}  # {comment}"
    return [together] if len(together) <= WIDTH else [*_above(line, comment), line]


def _above(line: str, comment: str) -> list[str]:
    margin = line[: len(line) - len(line.lstrip())] + "# "
    return textwrap.wrap(comment, WIDTH, initial_indent=margin, subsequent_indent=margin)
