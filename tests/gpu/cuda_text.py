"""CUDA text for the host: prelude_cuda.h itself, over CUDA's builtins on fibers.

Its asm statements, which no other processor takes, become runs of models (tests/standin/host/ptx.h)
that are found by the exact text; all else is compiled as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ASM = re.compile(r"\basm( volatile)?\(")
_OPERAND = re.compile(r'"([^"]*)"\((.*)\)', re.DOTALL)
_FIRST_FUNCTION = re.compile(r"^FN ", re.MULTILINE)
_OPENING, _CLOSING = "([{", ")]}"


def host_text(prelude: str, text: str, *, checked: bool) -> str:
    """A module for the host's compiler, from a prelude for CUDA and what follows it."""
    plain = _COMMENT.sub("", prelude.replace("\\\n", " "))
    functions = _FIRST_FUNCTION.search(plain)
    begin = functions.start() if functions else len(plain)
    return (
        f'#define GC_CHECK {int(checked)}\n#include "cuda_builtins.h"\n'
        f'{plain[:begin]}\n#include "watched.h"\n'
        f'{_with_models(plain[begin:])}\n#include "places.h"\n{text}'
    )


def _with_models(text: str) -> str:
    """The text with each asm statement as the run of a model."""
    parts, at = [], 0
    while found := _ASM.search(text, at):
        sections = list(_split(text[found.end() :], ":"))
        end = found.end() + sum(map(len, sections)) + len(sections)
        parts += [text[at : found.start()], _run(sections, "volatile " if found[1] else "")]
        at = end
    return "".join([*parts, text[at:]])


def _split(text: str, by: str) -> Iterator[str]:
    """What stands between separators, up to the bracket that closes what is around."""
    depth, begin, quoted = 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == by and not depth:
            yield text[begin:at]
            begin = at + 1
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            if not depth:
                yield text[begin:at]
                return
            depth -= 1
    raise AssertionError(f"an asm statement without an end: {text[:80]}")


def _run(sections: list[str], how: str) -> str:
    """A statement from its parts: text, outputs, inputs, and what else it changes."""
    text, outputs, inputs, changed = (*map(str.strip, sections), "", "", "")[:4]
    written, read = _operands(outputs), _operands(inputs)
    letters = how + " : ".join(
        " ".join(letter for letter, _ in listed) for listed in (written, read)
    )
    operands = '"' + " ".join(f"{letters} : {changed.replace(chr(34), '')}".split()) + '"'
    moves = [f"gc_of.to({place});" for _, place in written]
    moves += [f"gc_of.with({value});" for _, value in read]
    return (
        f"do {{ static const gc::Model *const gc_model = gc::model_of({text}, {operands}); "
        f"gc::Operands gc_of; {' '.join(moves)} "
        f"gc::run_model(gc_model, {text}, {operands}, gc_of); }} while (0)"
    )


def _operands(section: str) -> list[tuple[str, str]]:
    """Constraints and expressions."""
    listed = [found for one in _split(section + ")", ",") if (found := _OPERAND.match(one.strip()))]
    return [(found[1], found[2]) for found in listed]
