"""Samples in an .npz archive: `data: {name: npz}`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gradcli.data import npy
from gradcli.data.arrays import Arrays, Opened, opened_file
from gradcli.data.files import load, regular_size, shown
from gradcli.data.npy import Header, Npy
from gradcli.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class NpzSource(Arrays):
    """Samples and targets as arrays of one .npz archive."""

    file: Annotated[str, "the archive; the other keys name arrays in it"]

    PLACES = ("file",)

    def header(self, name: str) -> Header:
        """From the first bytes of the array."""
        path = Path(self.file)
        regular_size(path)
        return npy.peek(path, name, shown(path))

    def array(self, name: str, opened: dict[Path, Opened]) -> Npy:
        """The array unpacked."""
        return npy.unpack(opened_file(Path(self.file), opened).data, name, shown(self.file))

    def named(self, name: str) -> str:
        """The archive, then the array."""
        return f"{shown(self.file)}, {name}"

    def roles(self) -> dict[str, str]:
        """The archive holds all."""
        return {"train": self.file}

    def key(self, name: str) -> str:
        """Its name."""
        return name

    def at(self, path: Path) -> NpzSource:
        """Another archive: its test arrays, where it has them as this one does."""
        data, source = load(path).data, shown(path)
        names = npy.names(data, source)
        pairs = [(self.inputs, self.targets)]
        if self.test_inputs and {self.test_inputs, self.test_targets} <= {*names, None}:
            pairs = [(self.test_inputs, self.test_targets)]
        ((inputs, targets),) = pairs
        return NpzSource(file=str(path), inputs=inputs, targets=targets, target=self.target)
