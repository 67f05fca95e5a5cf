"""Samples in an .npz archive: `data: {name: npz}`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

from gradcli.data import files, npy
from gradcli.data.array_files import OpenFile, npz_header, npz_tensor
from gradcli.data.arrays import Arrays, sample_shape
from gradcli.data.cached import locate_cache
from gradcli.data.facts import DataSpec
from gradcli.data.files import locate, path_text
from gradcli.data.npy import NpyHeader
from gradcli.data.samples import InFiles
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor


@dataclass(frozen=True, kw_only=True)
class NpzSource(Arrays):
    """Samples and targets as arrays of one .npz archive."""

    file: Annotated[str, "the archive; the other keys name arrays in it"]

    PATH_KEYS = ("file", "cache")

    def locate(self, root: Path) -> Self:
        """The paths made absolute."""
        return replace(
            self, file=str(locate(self.file, root)), cache=locate_cache(self.cache, root)
        )

    def facts(self) -> DataSpec:
        """From the headers; a large archive is prepared now."""
        facts = super().facts()
        if self._is_large:
            open_files: dict[Path, OpenFile] = {}
            for name in self._names():
                self.read_array(name, open_files)
        return facts

    def _names(self) -> list[str]:
        return [name for pair in self._pairs().values() for name in pair if name is not None]

    @cached_property
    def _is_large(self) -> bool:
        """Whether the arrays are unpacked into prepared data; arrays in Fortran order are not."""
        heads = [self.header(name) for name in self._names()]
        transposed = any(head.fortran and len(head.shape) > 1 for head in heads)
        return not transposed and sum(head.total for head in heads) > files.LARGE

    def in_files(self) -> InFiles:
        """What is prepared is mapped."""
        if not self._is_large:
            return InFiles()
        return InFiles(sample_shape(self.header(self.inputs)), self.targets is not None)

    def read_array(self, name: str, open_files: dict[Path, OpenFile]) -> Tensor:
        """Mapped from prepared data, or in memory."""
        return npz_tensor(Path(self.file), name, open_files, self.cache, large=self._is_large)

    def header(self, name: str) -> NpyHeader:
        """From the first bytes of the array."""
        return npz_header(Path(self.file), name)

    def title(self, name: str) -> str:
        """The archive, then the array."""
        return f"{path_text(self.file)}, {name}"

    def roles(self) -> dict[str, str]:
        """The archive holds all."""
        return {"train": self.file}

    def key(self, name: str) -> str:
        """Its name."""
        return name

    def at(self, path: Path) -> NpzSource:
        """Another archive: its test arrays, where it has them as this one does."""
        names = npy.names(path, path_text(path))
        pairs = [(self.inputs, self.targets)]
        if self.test_inputs and {self.test_inputs, self.test_targets} <= {*names, None}:
            pairs = [(self.test_inputs, self.test_targets)]
        ((inputs, targets),) = pairs
        return NpzSource(
            file=str(path), inputs=inputs, targets=targets, target=self.target, cache=self.cache
        )
