"""JSON that scripts read, and the files of it in a run, which anybody may have changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradcli.train.small_file import read_small

# Of status.json, of what each --json prints and of each line of predict's .jsonl. It is raised when
# a key changes its meaning or goes; docs/runs.md lists the keys.
FORMAT = 1
DEEPEST = 200  # levels: Python can copy, compare and write so many; a config has at most half


def decoded(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deep to be copied or written again.
    """
    value = json.loads(text)
    level, depth = [value], 0
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
        if depth > DEEPEST:
            raise RecursionError(f"nested deeper than {DEEPEST} levels")
    return value


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file, empty if it cannot be read."""
    try:
        value = decoded(read_small(file))
        json.dumps(value, allow_nan=False)  # NaN, and what is beyond doubles and loads as inf
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
