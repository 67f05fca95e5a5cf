"""Samples in .npy files: `data: {name: npy}`."""

from __future__ import annotations

from pathlib import Path

from gradcli.data import npy
from gradcli.data.arrays import Arrays, opened_file
from gradcli.data.files import Loaded, read, regular_size, shown
from gradcli.data.images import new_pair
from gradcli.data.npy import Header, Npy
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import quantity


@dataclass(frozen=True, kw_only=True)
class NpySource(Arrays):
    """Samples and targets in .npy files."""

    PLACES = ("inputs", "targets", "test_inputs", "test_targets")

    def header(self, name: str) -> Header:
        """From the first bytes; the length of the file is compared with it."""
        path = Path(name)
        found = npy.parse_header(read(path, npy.LONGEST + 12), shown(path))
        size = regular_size(path)
        if size != found.total:
            raise DataError(
                f"{shown(path)}: expected {quantity(found.total, 'byte')} from the header "
                f"({found}), got {size}",
                code="E302",
            )
        return found

    def array(self, name: str, opened: dict[Path, Loaded]) -> Npy:
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
