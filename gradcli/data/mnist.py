"""MNIST: the four original files, in a folder `datasets/mnist` beside or above the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradcli.data.dataset import Dataset, Facts, Unseen
from gradcli.data.files import expanded, regular_size, shown
from gradcli.data.images import IdxSource, read_images
from gradcli.errors import DataError

FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
FOLDER = Path("datasets/mnist")
# Mean and standard deviation of the 60,000 x 28 x 28 training pixels, in 0..1.
MEAN, STD = 0.1307, 0.3081


@dataclass(frozen=True)
class Mnist:
    """70,000 handwritten digits, 1 x 28 x 28 in 0..1; 10,000 of them are the test split."""

    dir: str | None = field(
        default=None,
        metadata={"doc": "folder of the four files; left out: the nearest datasets/mnist"},
    )
    split: dict[str, int | str] | None = field(
        default=None, metadata={"doc": "counts or percents of the 60,000 for train and val"}
    )
    normalize: bool = field(
        default=False, metadata={"doc": "subtract 0.1307 and divide by 0.3081, as is customary"}
    )

    def locate(self, root: Path) -> Mnist:
        """With the folder that holds the four files."""
        given = None if self.dir is None else root.resolve() / expanded(self.dir)
        places = _places(root) if given is None else [given]
        for place in places:
            if place.is_dir():
                _files(place)
                return replace(self, dir=str(place))
        looked = tuple(f"looked in: {shown(place)}" for place in places)
        raise DataError(
            "the MNIST files are not there",
            notes=(*looked, "write data: {name: mnist, dir: FOLDER} to say where they are"),
        )

    def _idx(self) -> IdxSource:
        folder = Path(self.dir or FOLDER)
        mean, std = (MEAN, STD) if self.normalize else (0.0, 1.0)
        return IdxSource(**_files(folder), classes=10, split=self.split, mean=mean, std=std)

    def facts(self) -> Facts:
        """From the headers of the four files."""
        return replace(self._idx().facts(), labels=tuple("0123456789"))

    def load(self) -> Dataset:
        """All four files in memory, checked."""
        made = self._idx().load()
        facts = replace(made.facts, labels=tuple("0123456789"))
        return replace(made, source=self, facts=facts)

    def read(self, path: Path, state: Mapping[str, Any]) -> Unseen:
        """Images from another IDX file, 28 x 28."""
        return read_images(path, state)


def _places(root: Path) -> list[Path]:
    """datasets/mnist under the config's folder, under each folder above it, and under this one."""
    folder = root.resolve()
    found = [above / FOLDER for above in (folder, *folder.parents)]
    here = Path.cwd() / FOLDER
    return found if here in found else [*found, here]


def _files(folder: Path) -> dict[str, str]:
    """The path of each of the four files, gzipped or not."""
    paths: dict[str, str] = {}
    for key, name in FILES.items():
        packed = folder / f"{name}.gz"
        path = packed if packed.exists() else folder / name
        regular_size(path)
        paths[key] = str(path)
    return paths
