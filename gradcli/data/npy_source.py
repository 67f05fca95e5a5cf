"""Samples in .npy files: `data: {name: npy}`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data import files, npy
from gradcli.data.arrays import Arrays, Opened, opened_file, sample_shape
from gradcli.data.files import read, regular_size, shown
from gradcli.data.images import new_pair
from gradcli.data.npy import Header, Npy
from gradcli.data.samples import InFiles
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data.mapped_array import MappedArray


MAPPED = ("b1", "u1", "i4", "i8", "f4")  # types of which tensors are made as they lie there


@dataclass(frozen=True, kw_only=True)
class NpySource(Arrays):
    """Samples and targets in .npy files."""

    PLACES = ("inputs", "targets", "test_inputs", "test_targets")

    def header(self, name: str) -> Header:
        """From the first bytes; the length of the file is compared with it."""
        path = Path(name)
        found = npy.parse_header(read(path, npy.LONGEST + 12), shown(path), most=None)
        size = regular_size(path)
        if size != found.total:
            raise DataError(
                f"{shown(path)}: expected {quantity(found.total, 'byte')} from the header "
                f"({found}), got {size}",
                code="E302",
            )
        return found

    def _maps(self, name: str) -> bool:
        """Whether an array is mapped: it is large, and lies there as tensors have it."""
        header = self.header(name)
        return header.total > files.LARGE and header.type in MAPPED and not _turned(header)

    def in_files(self) -> InFiles:
        """Large arrays in the order and of a type that tensors have."""
        inputs = sample_shape(self.header(self.inputs)) if self._maps(self.inputs) else None
        return InFiles(inputs, targets=self.targets is not None and self._maps(self.targets))

    def stored(self, name: str, opened: dict[Path, Opened]) -> Tensor:
        """Mapped or in memory."""
        if not self._maps(name):
            return super().stored(name, opened)
        from gradcli.data.mapped_array import MappedArray  # small data does without

        there = opened.get(Path(name))
        if not isinstance(there, MappedArray):
            opened[Path(name)] = there = _mapped(Path(name), self.header(name))
        return there.tensor

    def array(self, name: str, opened: dict[Path, Opened]) -> Npy:
        """The file whole."""
        return npy.parse(opened_file(Path(name), opened).data, shown(name))

    def named(self, name: str) -> str:
        """Its path."""
        return shown(name)

    def roles(self) -> dict[str, str]:
        """Samples and targets of each split."""
        return {
            f"{split}.{what}": path
            for split, pair in self._pairs().items()
            for what, path in zip(("inputs", "targets"), pair, strict=True)
            if path is not None
        }

    def key(self, name: str) -> None:
        """A file of its own holds it."""

    def at(self, path: Path) -> NpySource:
        """Files in a folder, called as these are."""
        pairs = [(self.test_inputs, self.test_targets), (self.inputs, self.targets)]
        inputs, targets = new_pair(path, pairs)
        return NpySource(
            inputs=str(inputs),
            targets=None if targets is None else str(targets),
            target=self.target,
        )


def _turned(header: Header) -> bool:
    """Whether the numbers lie in another order than in tensors, or between their addresses."""
    odd = header.length % int(header.type[1])
    return bool(odd) or header.swapped or (header.fortran and len(header.shape) > 1)


def _mapped(path: Path, header: Header) -> MappedArray:
    """A large array where it lies; truth values and floats are looked at in the background."""
    from gradcli.data.mapped_array import MappedArray
    from gradcli.data.prepared.number_checks import Below, Check, Finite

    dtypes = {"i4": engine.int32, "i8": engine.int64, "f4": engine.float32}
    check: Check | None = None
    if header.type == "f4":
        check = Finite(header.length, max(1, math.prod(header.shape[1:])))
    elif header.type == "b1":
        check = Below(header.length, 1, 2, "truth value")
    return MappedArray(
        path, dtypes.get(header.type, engine.uint8), header.shape, header.length, check
    )
