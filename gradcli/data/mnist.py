"""MNIST and Fashion-MNIST: four IDX files in a folder `datasets/NAME` beside or above a config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import regular_size
from gradcli.data.image_source import KnownImages, Statistic
from gradcli.data.images import IdxSource, holds_samples, read_images, unseen
from gradcli.dataclass import dataclass

FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
# Mean and standard deviation of the 60,000 x 28 x 28 training pixels, in 0..1.
MEAN, STD = 0.1307, 0.3081


@dataclass(frozen=True)
class Mnist(KnownImages):
    """70,000 handwritten digits, 1 x 28 x 28 in 0..1; 10,000 of them are the test split."""

    NAME = "mnist"
    USUAL = (MEAN, STD)
    CHANNELS = 1
    CONTENTS = f"{', '.join(FILES.values())} (gzipped or not; gradcli's repository has them)"
    LABELS: ClassVar[tuple[str, ...]] = tuple("0123456789")

    def paths(self, folder: Path) -> dict[str, str]:
        """The four files, gzipped or not."""
        paths: dict[str, str] = {}
        for key, name in FILES.items():
            packed = folder / f"{name}.gz"
            path = packed if packed.exists() else folder / name
            regular_size(path)
            paths[key] = str(path)
        return paths

    def _idx(self) -> IdxSource:
        mean, std = self.statistics()
        assert isinstance(mean, float) and isinstance(std, float), "there is one channel"
        return IdxSource(
            **self.paths(Path(self.dir or "")),
            classes=10,
            split=self.split,
            mean=mean,
            std=std,
            size=self.size,
            target=self.target,
            augment=self.augment,
        )

    def _with_labels(self, facts: DataSpec) -> DataSpec:
        return replace(facts, labels=() if facts.classes is None else self.LABELS)

    def facts(self) -> DataSpec:
        """From the headers of the four files."""
        return self._with_labels(self._idx().facts())

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """As the headers say."""
        return self._idx().stored_types()

    def load(self) -> LoadedData:
        """All four files in memory, checked."""
        dataset = self._idx().load()
        return replace(dataset, source=self, facts=self._with_labels(dataset.facts))

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of images, and not of labels."""
        return holds_samples(path)

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Images from another IDX file, 28 x 28."""
        inputs, scale = read_images(path, facts)
        return unseen(inputs, scale, facts, path)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Images and labels from a folder with files called as MNIST's are."""
        return IdxSource(target=self.target, **dict[str, Any](FILES)).new_split(path, facts)


@dataclass(frozen=True)
class FashionMnist(Mnist):
    """70,000 pictures of clothes, 1 x 28 x 28 in 0..1; 10,000 of them are the test split."""

    NAME = "fashion_mnist"
    USUAL = (0.2860, 0.3530)
    CONTENTS = f"Fashion-MNIST's {', '.join(FILES.values())} (gzipped or not)"
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
