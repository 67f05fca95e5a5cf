"""The content security policy of a page: nothing is loaded, and only what stands here is run."""

from __future__ import annotations

import base64
import hashlib


def policy(styles: list[str], scripts: list[str], *, live: bool) -> str:
    """Allows these styles and scripts, by their hashes, and pictures that stand in the page.

    `live` pages may ask the server that they come from for more.
    """
    parts = [
        "default-src 'none'",
        "img-src data:",
        f"style-src {' '.join(map(_hash, styles))}",
        f"script-src {' '.join(map(_hash, scripts))}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if live:
        parts.append("connect-src 'self'")
    return "; ".join(parts)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
