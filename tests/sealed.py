"""Checkpoints with other metadata and a seal that is right all the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from gradcli.train.safetensors_file import decode, encode_header, layout


def rewrite(path: Path, meta: dict[str, Any]) -> None:
    """The checkpoint with this metadata in place of its own."""
    path.write_bytes(sealed(path.read_bytes(), json.dumps({**meta, "sha256": "0" * 64})))


def sealed(data: bytes, meta: str) -> bytes:
    """The bytes of a checkpoint with this text as its metadata; the digest in it is 64 zeros."""
    tensors = decode(data, "checkpoint").tensors
    blank = encode_header(tensors, {"gradcli": meta})
    bodies = b"".join(bytes(tensors[name].data) for name in layout(tensors))
    digest = hashlib.sha256(blank + bodies).hexdigest().encode()
    return blank.replace(b"0" * 64, digest, 1) + bodies


def metadata(data: bytes) -> dict[str, Any]:
    """The metadata of a checkpoint's bytes."""
    meta: dict[str, Any] = json.loads(decode(data, "checkpoint").metadata["gradcli"])
    return meta
