"""The key `cache` of sources whose data can be prepared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from gradcli.data.files import expanded
from gradcli.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Cached:
    """A source whose data is written once into a cache folder; `PATH_KEYS` has the key `cache`."""

    cache: Annotated[str | None, "folder of prepared data; left out: the user's cache folder"] = (
        None
    )


def locate_cache(path: str | None, root: Path) -> str | None:
    """The absolute path of the folder, which need not be there yet."""
    return None if path is None else os.path.abspath(root / expanded(path))  # noqa: PTH100
