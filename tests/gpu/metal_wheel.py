"""The macOS wheel of pyobjc-framework-Metal: it tells on any machine which names Metal has.

It is downloaded once with pip, and never imported: it is read.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

VERSION = "12.2.2"
FOLDER = Path(tempfile.gettempdir()) / f"gradcli-pyobjc-{VERSION}-{os.getuid()}"
_WANTED = f"pyobjc-framework-Metal=={VERSION}"
_FOR = ("--platform", "macosx_11_0_arm64", "--python-version", "3.12", "--implementation", "cp")


@cache
def path() -> Path:
    """The wheel; where it cannot be had, the test is skipped, which CI does not let pass."""
    if not (found := sorted(FOLDER.glob("*.whl"))):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", *_FOR, "--dest", str(FOLDER), _WANTED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted(FOLDER.glob("*.whl"))
        if not found:
            pytest.skip(f"{_WANTED} cannot be downloaded: {done.stderr.strip()[-300:]}")
    return found[0]


@cache
def metadata() -> str:
    """What pyobjc knows of Metal's functions, constants and selectors, as its source has it."""
    with zipfile.ZipFile(path()) as wheel:
        return wheel.read("Metal/_metadata.py").decode()


@cache
def selectors() -> frozenset[str]:
    """All selectors in the metadata, and in the protocols that were compiled with them."""
    with zipfile.ZipFile(path()) as wheel:
        compiled = b"".join(wheel.read(name) for name in wheel.namelist() if name.endswith(".so"))
    words = re.findall(rb"(?<=\0)[A-Za-z_][\w:]*(?=\0)", compiled)
    return frozenset(re.findall(r'b"([A-Za-z_][\w:]*)"', metadata())) | {w.decode() for w in words}


@cache
def constants() -> dict[str, int]:
    """The numbers of its enumerations."""
    return {name: int(value) for name, value in re.findall(r"\$(\w+)@(-?\d+)", metadata())}


def out_arguments(selector: str) -> int:
    """How many results a call gives beside its own, by pointers that it is told."""
    found = re.search(rf'r\(\s*b"\w+",\s*b"{selector}",.*?\n    \)\n', metadata(), re.DOTALL)
    assert found, selector
    return found[0].count('"type_modifier": b"o"')
