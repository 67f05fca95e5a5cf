"""Versions of installed packages, by the names of the folders that installers leave."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

_FOLDER = re.compile(r"(.+?)(-[^-]+)?(-py[0-9.]+)?\.(dist-info|egg-info|egg-link)")


def version(package: str) -> str:
    """The version of a package; empty where it is not installed.

    importlib.metadata says the same, and reads each package's description with what reads e-mail;
    it is asked where the name of the folder says no version.
    """
    folder = _folders(tuple(sys.path)).get(_plain(package))
    if folder is None:
        return ""
    if folder[2] and folder[4] == "dist-info":
        return folder[2].removeprefix("-")
    from importlib import metadata

    return metadata.version(package)


@cache
def _folders(path: tuple[str, ...]) -> dict[str, re.Match[str]]:
    """Map each package to its first folder on the import path."""
    folders: dict[str, re.Match[str]] = {}
    for entry in path:
        with suppress(OSError):  # a zip file, or nothing
            for name in [folder.name for folder in Path(entry).iterdir()]:
                match = _FOLDER.fullmatch(name)
                if match is not None:
                    folders.setdefault(_plain(match[1]), match)
    return folders


def _plain(name: str) -> str:
    """A package's name as installers compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
