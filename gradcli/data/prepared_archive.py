"""Arrays of large .npz archives, unpacked once, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradcli.data import npy
from gradcli.data.array_files import tensor
from gradcli.data.files import Loaded, path_text
from gradcli.data.prepared_rows import RowReading, rows_in
from gradcli.engine import Tensor

READER, VERSION = "npz", 1  # of prepared data


def array_in(path: Path, name: str, cache: Path) -> tuple[Tensor, Loaded]:
    """An array mapped from prepared data, and what is known of its archive.

    Raises:
        DataError: the archive is damaged or a bomb, or a number is outside float32.
    """

    def blocks() -> tuple[int, Iterator[Tensor]]:
        return npy.peek(path, name, path_text(path)).shape[0], _blocks(path, name)

    return rows_in(path, RowReading(READER, VERSION, {"array": name}, blocks), cache)


def _blocks(path: Path, name: str) -> Iterator[Tensor]:
    first = 0
    for block in npy.unpack_rows(path, name, path_text(path)):
        rows = tensor(block, f"{path_text(path)}, {name}", first)
        yield rows
        first += rows.shape[0]
