"""Samples in .npy files: `data: {name: npy}`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data import files, npy
from gradcli.data.arrays import Arrays, Opened, opened_file, sample_shape
from gradcli.data.cached import Cached
from gradcli.data.facts import Facts
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
class NpySource(Cached, Arrays):
    """Samples and targets in .npy files."""

    PLACES = ("inputs", "targets", "test_inputs", "test_targets", "cache")

    def header(self, name: str) -> Header:
        """From the first bytes; the length of the file is compared with it."""
        path = Path(name)
        header = npy.parse_header(read(path, npy.LONGEST + 12), shown(path), most=None)
        size = regular_size(path)
        if size != header.total:
            raise DataError(
                f"{shown(path)}: expected {quantity(header.total, 'byte')} from the header "
                f"({header}), got {size}",
                code="E302",
            )
        return header

    def facts(self) -> Facts:
        """From the headers; large arrays that lie otherwise than in tensors are prepared now."""
        facts = super().facts()
        for name in self.roles().values():
            if self._is_large(name) and not _lies_as_in_tensors(self.header(name)):
                self.stored(name, {})
        return facts

    def _is_large(self, name: str) -> bool:
        """Whether an array is mapped, as it lies or as it was prepared."""
        return self.header(name).total > files.LARGE

    def in_files(self) -> InFiles:
        """Large arrays."""
        inputs = sample_shape(self.header(self.inputs)) if self._is_large(self.inputs) else None
        return InFiles(inputs, targets=self.targets is not None and self._is_large(self.targets))

    def stored(self, name: str, opened: dict[Path, Opened]) -> Tensor:
        """Mapped or in memory."""
        if not self._is_large(name):
            return super().stored(name, opened)
        path, header = Path(name), self.header(name)
        if not _lies_as_in_tensors(header):
            from gradcli.data.prepared.cache import cache_folder  # small data does without
            from gradcli.data.prepared_array import npy_array

            numbers, opened[path] = npy_array(path, header, cache_folder(self.cache))
            return numbers
        from gradcli.data.mapped_array import MappedArray

        there = opened.get(path)
        if not isinstance(there, MappedArray):
            opened[path] = there = _mapped(path, header)
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
            cache=self.cache,
        )


def _lies_as_in_tensors(header: Header) -> bool:
    """Whether the numbers are of such a type and in such an order, at addresses of that type."""
    turned = header.swapped or (header.fortran and len(header.shape) > 1)
    return header.type in MAPPED and not turned and header.length % int(header.type[1]) == 0


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
