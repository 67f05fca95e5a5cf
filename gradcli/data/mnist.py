"""MNIST and Fashion-MNIST: four IDX files in a folder `datasets/NAME` beside or above a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from gradcli.data.dataset import Facts, LoadedData, Unseen
from gradcli.data.files import expanded, nearest, regular_size
from gradcli.data.images import IdxSource, read_images
from gradcli.data.pictures import Pictures, Statistic, normalization

FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
# Mean and standard deviation of the 60,000 x 28 x 28 training pixels, in 0..1.
MEAN, STD = 0.1307, 0.3081


@dataclass(frozen=True)
class Mnist(Pictures):
    """70,000 handwritten digits, 1 x 28 x 28 in 0..1; 10,000 of them are the test split."""

    dir: Annotated[str | None, "folder of the four files; left out: the nearest datasets/NAME"] = (
        None
    )
    split: Annotated[
        dict[str, int | str] | None, "counts or percents of the 60,000 for train and val"
    ] = None
    normalize: Annotated[
        bool | dict[str, Any],
        "subtract the usual mean and divide by the usual deviation, or by these",
    ] = False

    NAME: ClassVar[str] = "mnist"
    USUAL: ClassVar[tuple[float, float]] = (MEAN, STD)
    LABELS: ClassVar[tuple[str, ...]] = tuple("0123456789")

    def __post_init__(self) -> None:
        super().__post_init__()
        normalization(self.normalize, self.USUAL, 1)

    def locate(self, root: Path) -> Self:
        """With the folder that holds the four files."""
        given = None if self.dir is None else root.resolve() / expanded(self.dir)
        place = nearest(self.NAME, root, given)
        _files(place)
        return replace(self, dir=str(place))

    def _idx(self) -> IdxSource:
        mean, std = normalization(self.normalize, self.USUAL, 1)
        assert isinstance(mean, float) and isinstance(std, float), "there is one channel"
        return IdxSource(
            **_files(Path(self.dir or "")),
            classes=10,
            split=self.split,
            mean=mean,
            std=std,
            size=self.size,
            target=self.target,
            augment=self.augment,
        )

    def _named(self, facts: Facts) -> Facts:
        return replace(facts, labels=() if facts.classes is None else self.LABELS)

    def facts(self) -> Facts:
        """From the headers of the four files."""
        return self._named(self._idx().facts())

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """As the headers say."""
        return self._idx().stored_types()

    def load(self) -> LoadedData:
        """All four files in memory, checked."""
        made = self._idx().load()
        return replace(made, source=self, facts=self._named(made.facts))

    def read(self, path: Path, state: Mapping[str, object]) -> Unseen:
        """Images from another IDX file, 28 x 28."""
        return read_images(path, state)


@dataclass(frozen=True)
class FashionMnist(Mnist):
    """70,000 pictures of clothes, 1 x 28 x 28 in 0..1; 10,000 of them are the test split."""

    NAME: ClassVar[str] = "fashion_mnist"
    USUAL: ClassVar[tuple[float, float]] = (0.2860, 0.3530)
    LABELS: ClassVar[tuple[str, ...]] = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )


def _files(folder: Path) -> dict[str, str]:
    """The path of each of the four files, gzipped or not."""
    paths: dict[str, str] = {}
    for key, name in FILES.items():
        packed = folder / f"{name}.gz"
        path = packed if packed.exists() else folder / name
        regular_size(path)
        paths[key] = str(path)
    return paths
