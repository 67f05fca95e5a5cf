"""Arrays of large .npz archives, unpacked once, some rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradcli.data import npy
from gradcli.data.arrays import tensor
from gradcli.data.files import Loaded, check_sums, regular_size, shown
from gradcli.data.prepared.identity import sha256_of
from gradcli.data.prepared.progress import Progress
from gradcli.data.prepared.sets import Recipe, prepared
from gradcli.data.prepared.writer import ArrayWriter, Writer
from gradcli.engine import Tensor

READER, VERSION = "npz", 1  # of prepared data


def array_in(path: Path, name: str, cache: Path) -> tuple[Tensor, Loaded]:
    """An array mapped from prepared data, and what is known of its archive.

    Raises:
        DataError: the archive is damaged or a bomb, or a number is none of float32.
    """

    def write(writer: Writer) -> dict[str, Any]:
        header = npy.peek(path, name, shown(path))
        progress = writer.progress(header.shape[0], "row")
        array: ArrayWriter | None = None
        first = 0
        for block in npy.unpack_rows(path, name, shown(path)):
            rows = tensor(block, f"{shown(path)}, {name}", first)
            array = array or writer.array("numbers", rows.dtype, rows.shape[1:])
            array.append(rows.memoryview())
            first += rows.shape[0]
            progress.advance(rows.shape[0])
        return {}

    with Progress(f"hashing {shown(path.name)}", regular_size(path), "byte") as progress:
        sha256 = sha256_of(path, progress.advance, cache)
    made = prepared(
        Recipe(READER, VERSION, {"array": name}, {"file": (path, sha256)}), write, cache
    )
    known = Loaded(path, npy.ZIP, sha256, check_sums(path, sha256))
    return made.tensor("numbers"), known
