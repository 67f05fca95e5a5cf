"""Samples in .npy files: `data: {name: npy}`."""

from __future__ import annotations

from pathlib import Path

from gradcli.data.array_files import (
    OpenFile,
    is_large,
    lies_as_in_tensors,
    npy_header,
    npy_tensor,
)
from gradcli.data.arrays import Arrays, sample_shape
from gradcli.data.facts import DataSpec
from gradcli.data.files import path_text
from gradcli.data.images import new_pair
from gradcli.data.npy import NpyHeader
from gradcli.data.samples import InFiles
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor


@dataclass(frozen=True, kw_only=True)
class NpySource(Arrays):
    """Samples and targets in .npy files."""

    PATH_KEYS = ("inputs", "targets", "test_inputs", "test_targets", "cache")

    def header(self, name: str) -> NpyHeader:
        """From the first bytes; the length of the file is compared with it."""
        return npy_header(Path(name))

    def facts(self) -> DataSpec:
        """From the headers; large arrays that lie otherwise than in tensors are prepared now."""
        facts = super().facts()
        for name in self.roles().values():
            header = self.header(name)
            if is_large(header) and not lies_as_in_tensors(header):
                self.read_array(name, {})
        return facts

    def in_files(self) -> InFiles:
        """Large arrays."""
        x, y = self._heads(self.inputs, self.targets)
        inputs = sample_shape(x) if is_large(x) else None
        return InFiles(inputs, targets=y is not None and is_large(y))

    def read_array(self, name: str, open_files: dict[Path, OpenFile]) -> Tensor:
        """Mapped or in memory."""
        return npy_tensor(Path(name), open_files, self.cache)

    def title(self, name: str) -> str:
        """Its path."""
        return path_text(name)

    def roles(self) -> dict[str, str]:
        """Samples and targets of each split."""
        return {
            f"{split}.{what}": path
            for split, pair in self._pairs().items()
            for what, path in zip(("inputs", "targets"), pair, strict=True)
            if path is not None
        }

    def key(self, name: str) -> None:
        """None: the array has its own file."""

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
