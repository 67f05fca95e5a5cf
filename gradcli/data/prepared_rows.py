"""Rows of large files that cannot be mapped as they lie: prepared once, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gradcli.data.files import Loaded, check_sums, path_text, read, regular_size
from gradcli.data.prepared.identity import sha256_of
from gradcli.data.prepared.progress import Progress
from gradcli.data.prepared.sets import Recipe, prepared
from gradcli.data.prepared.writer import ArrayWriter, Writer
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor


@dataclass(frozen=True)
class RowReading:
    """How the rows of a file are read.

    Attributes:
        reader: with its version and `keys`, what decides on the numbers.
        blocks: gives how many rows there are, and all of them in their order.
    """

    reader: str
    version: int
    keys: Mapping[str, Any]
    blocks: Callable[[], tuple[int, Iterator[Tensor]]]


def rows_in(path: Path, rows: RowReading, cache: Path) -> tuple[Tensor, Loaded]:
    """The rows mapped from prepared data, and what is known of their file."""

    def write(writer: Writer) -> dict[str, Any]:
        total, blocks = rows.blocks()
        progress = writer.progress(total, "row")
        array: ArrayWriter | None = None
        for block in blocks:
            array = array or writer.array("numbers", block.dtype, block.shape[1:])
            array.append(block.memoryview())
            progress.advance(block.shape[0])
        return {}

    with Progress(f"hashing {path_text(path.name)}", regular_size(path), "byte") as progress:
        sha256 = sha256_of(path, progress.advance, cache)
    recipe = Recipe(rows.reader, rows.version, rows.keys, {"file": (path, sha256)})
    content = prepared(recipe, write, cache)
    return content.tensor("numbers"), Loaded(path, read(path, 4), sha256, check_sums(path, sha256))
