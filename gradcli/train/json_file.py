"""JSON that scripts read, and the files of it in a run, which anybody may have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gradcli.train.small_file import read_small

# Of status.json, of what each --json prints and of each line of predict's .jsonl. It is raised when
# a key changes its meaning or goes; docs/runs.md lists the keys.
FORMAT = 1


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file, empty if it cannot be read."""
    try:
        value = json.loads(read_small(file))
        json.dumps(value, allow_nan=False)  # NaN, and what is beyond doubles and loads as inf
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
