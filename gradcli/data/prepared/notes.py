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
# What was read, with the identity of the file: each of 1,000 files of a folder is asked for alone.
_latest: dict[Path, tuple[object, dict[str, Any]]] = {}


def note_path(folder: Path, cache: Path, kind: str = "") -> Path:
    """Where something of the files in a folder is remembered."""
    absolute = os.path.abspath(folder)  # noqa: PTH100 -- keeps links
    name = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:16]
    return cache / FOLDER / f"{kind}{name}.json"


def read(path: Path) -> dict[str, Any]:
    """What is remembered there; nothing where the file is gone or was changed."""
    try:
        status = path.stat()
        if status.st_size > _LIMIT:
            return {}
        now = status.st_ino, status.st_mtime_ns, status.st_size
        identity, entries = _latest.get(path, (None, {}))
        if identity != now:
            entries = _parsed(path.read_bytes())
            _latest[path] = now, entries
        return dict(entries)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return {}


def _parsed(data: bytes) -> dict[str, Any]:
    whole = json.loads(data)
    entries = whole["entries"]
    return entries if whole["sha256"] == _hash(entries) and isinstance(entries, dict) else {}


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
