"""The table of registers as it stands, for tests that need no NVRTC; registers.py writes it."""

from __future__ import annotations

import json
from pathlib import Path

TABLE = Path(__file__).with_name("registers.json")
Table = dict[str, dict[str, list[int]]]


def table() -> Table:
    """The table: registers and shared memory by kernel and architecture."""
    kernels: Table = json.loads(TABLE.read_text(encoding="utf-8"))["kernels"]
    return kernels
