"""What a config will probably read is unpacked in a thread while the rest of gradcli is loaded.

The guess is made by the words of the file alone, long before the config is understood. A wrong one
costs work and changes nothing: whoever reads a file takes what was begun here or begins itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from gradcli.data.files import KNOWN_SETS, nearest
from gradcli.data.idx import read_ahead
from gradcli.errors import DataError

_WORD = re.compile(r"[\w./-]+")
_CONFIG_BYTES, _DATA_BYTES = 1 << 20, 64 << 20  # larger files are not worth a guess


def begin(config: Path) -> None:
    """Begin to read the files of the datasets that a config names."""
    with contextlib.suppress(OSError, ValueError, DataError):
        if config.is_file() and config.stat().st_size <= _CONFIG_BYTES:
            words = set(_WORD.findall(config.read_text(encoding="utf-8")))
            for path in _files(words, config.parent):
                read_ahead(path)


def _files(words: set[str], root: Path) -> Iterator[Path]:
    """Packed IDX files of well-known sets; plain ones are read in no time."""
    for name in sorted(words & KNOWN_SETS):
        packed = sorted(nearest(name, root, None).glob("*-ubyte.gz"))
        yield from (path for path in packed if path.stat().st_size <= _DATA_BYTES)
