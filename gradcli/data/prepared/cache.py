"""The folder of prepared data, and which data is too small to need it."""

from __future__ import annotations

import os
from pathlib import Path

from gradcli.data.files import regular_size
from gradcli.errors import RunError

SMALL = 8 << 20  # bytes of sources that are read whole at each start


def cache_folder(setting: str | None) -> Path:
    """`data.cache` where it is set, else $XDG_CACHE_HOME/gradcli, else ~/.cache/gradcli."""
    if setting is not None:
        return Path(setting)
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if folder.is_absolute():  # the XDG standard says to ignore relative paths
        return folder / "gradcli"
    try:
        return Path.home() / ".cache" / "gradcli"
    except RuntimeError:
        raise RunError(
            "there is no home folder for the cache of prepared data",
            code="E708",
            notes=("say where it is: data: {cache: DIR}",),
        ) from None


def small(*paths: Path | str, limit: int = SMALL) -> bool:
    """Whether these files together are so quick to read that they stay in memory."""
    return sum(regular_size(Path(path)) for path in paths) <= limit
