"""Small files in `known/` of the cache: what is remembered of files that were read once.

Losing one costs a hash and nothing else; one that was damaged counts as lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

FOLDER = "known"
_LIMIT = 64 << 20


def place(folder: Path, cache: Path, kind: str = "") -> Path:
    """Where something of the files in a folder is remembered."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 -- keeps links
    name = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:16]
    return cache / FOLDER / f"{kind}{name}.json"


def read(path: Path) -> dict[str, Any]:
    """What is remembered there; nothing where the file is gone or was changed."""
    try:
        if path.stat().st_size > _LIMIT:
            return {}
        whole = json.loads(path.read_bytes())
        entries = whole["entries"]
        return entries if whole["sha256"] == _hash(entries) and isinstance(entries, dict) else {}
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return {}


def write(path: Path, entries: dict[str, Any]) -> None:
    """Remember; a cache that cannot be written costs the hash next time."""
    aside = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps({"entries": entries, "sha256": _hash(entries)}))
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()


def _hash(entries: object) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode("ascii")).hexdigest()
