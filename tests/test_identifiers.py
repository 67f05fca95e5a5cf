"""One word for one thing: no class name stands for two, and retired words stay away."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import gradcli

SOURCES = Path(gradcli.__file__).parent
MODULES = sorted(SOURCES.rglob("*.py"))
# Words that the field has better ones for, and the better ones.
RETIRED = {
    "again": "the thing that is repeated, or the verb: retry, reopen, repeat",
    "answers": "predictions",
    "backward_recorded": "backward_create_graph",
    "chances": "probabilities",
    "circumstances": "RunContext",
    "composed": "decomposition",
    "feeds": "inputs",
    "flipped": "flip",
    "gradient_graph": "double_backward",
    "likeness": "similarity",
    "mass": "weight",
    "on_refusal": "on_fallback",
    "picture": "image",
    "pictures": "images",
    "place": "index, position, location or path",
    "places": "indices, positions, locations or paths",
    "rebuilt": "recomputed",
    "recorded_walk": "CreateGraphWalk",
    "says": "description",
    "takes": "accepts, supports or input_type",
    "told": "what it is",
    "why_not": "fallback_reason, or the reason of what",
    "wires": "transfers",
}
# Old names that go on working, and fields that files and output have as keys.
STAYING = {
    "engine/program/capture.py": {"why_not"},
    "errors.py": {"place"},
    "train/value_origins.py": {"place"},
}


def bindings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each function, class, argument, variable and attribute that is bound."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def snake(name: str) -> str:
    """`RecordedWalk` as `recorded_walk`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def test_no_class_name_stands_for_two() -> None:
    files = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path.relative_to(SOURCES).as_posix())
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_no_identifier_is_a_retired_word() -> None:
    wrong = [
        f"{path.relative_to(SOURCES)}:{line}: {name}: say {RETIRED[snake(name)]}"
        for path in MODULES
        for line, name in bindings(path)
        if snake(name) in RETIRED
        and name not in STAYING.get(path.relative_to(SOURCES).as_posix(), ())
    ]
    assert wrong == []
