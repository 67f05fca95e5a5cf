"""The JSON files beside a run's checkpoints, which anybody may have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file, empty if it cannot be read."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
