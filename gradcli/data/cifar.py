"""CIFAR-10 and CIFAR-100 in their binary form: rows of label bytes and 3 x 32 x 32 pixels."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import (
    Loaded,
    load,
    path_text,
    read,
    regular_size,
)
from gradcli.data.image_source import KnownImages, Statistic, splits_of
from gradcli.data.images import check_labels, unseen
from gradcli.data.samples import Samples, tensor_of
from gradcli.data.split import cut, unused_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity, verb

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Cifar10(KnownImages):
    """Colour pictures of 10 kinds, 3 x 32 x 32 in 0..1; test_batch.bin is the test split."""

    NAME = "cifar10"
    TRAIN: ClassVar[tuple[str, ...]] = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
    TEST: ClassVar[str] = "test_batch.bin"
    MARKS: ClassVar[int] = 1  # label bytes of a row, of which the last one counts
    CLASSES: ClassVar[int] = 10
    NAMES: ClassVar[str] = "batches.meta.txt"
    CHANNELS = 3
    CONTENTS = "data_batch_1.bin to data_batch_5.bin and test_batch.bin, of the binary version,"
    # Of the 50,000 training images, in 0..1.
    USUAL = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))

    def paths(self, folder: Path) -> dict[str, str]:
        """The files by name."""
        for name in (*self.TRAIN, self.TEST):
            regular_size(folder / name)
        return {name: str(folder / name) for name in (*self.TRAIN, self.TEST)}

    @property
    def _folder(self) -> Path:
        return Path(self.dir or "")

    def facts(self) -> DataSpec:
        """From the lengths of the files."""
        return self.model_facts(self._facts_in_files())

    def _facts_in_files(self) -> DataSpec:
        counts = {n: self._count(self._folder / n) for n in (*self.TRAIN, self.TEST)}
        test = counts.pop(self.TEST)
        total = sum(counts.values())
        parts = self._cuts(total)
        sizes = {name: len(part) for name, part in parts.items()}
        return DataSpec(
            input=SHAPE,
            input_kind="float",
            target=(),
            classes=self.CLASSES,
            vocab=None,
            labels=self._labels(),
            sizes={**sizes, "test": test},
            unused=unused_of(parts, total),
        )

    def _count(self, path: Path) -> int:
        return rows_in(regular_size(path), self.MARKS, path_text(path))

    def _cuts(self, total: int) -> dict[str, range]:
        return cut(self.split or {"train": "100%"}, total, ("train", "val"))

    def _labels(self) -> tuple[str, ...]:
        """The names in the file beside the images, where it names them all."""
        path = self._folder / self.NAMES
        lines = read(path, 1 << 16).decode("utf-8", "replace").split() if path.is_file() else []
        return tuple(lines) if len(set(lines)) == len(lines) == self.CLASSES else ()

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """Bytes."""
        return "uint8", "uint8", 255.0, *self.statistics()

    def load(self) -> LoadedData:
        """All files in memory, every label checked."""
        facts = self._facts_in_files()
        self.model_facts(facts)
        mean, std = self.statistics()
        files = {name: load(self._folder / name) for name in (*self.TRAIN, self.TEST)}
        roles = {f"train[{i}]": name for i, name in enumerate(self.TRAIN)} | {"test": self.TEST}
        parts = {name: self._parse(file) for name, file in files.items()}
        test = parts.pop(self.TEST)
        images = b"".join(images for _, images in parts.values())
        labels = b"".join(labels for labels, _ in parts.values())
        whole = _samples(labels, images).normalised(mean, std)
        splits, notes = splits_of(whole, self._cuts(whole.size), self.split, facts)
        dataset = LoadedData(
            source=self,
            facts=DataFacts.of(facts, stored=SHAPE, mean=mean, std=std),
            splits={**splits, "test": _samples(*test).normalised(mean, std)},
            sha256={role: files[name].sha256 for role, name in roles.items()},
            files={role: str(files[name].path) for role, name in roles.items()},
            notes=(*(note for file in files.values() for note in file.notes()), *notes),
        )
        return self.model_view(dataset)

    def _parse(self, file: Loaded) -> tuple[bytes, bytes]:
        source = path_text(file.path)
        labels, images = parse(file.data, self.MARKS, source)
        check_labels(labels, self.CLASSES, source)
        return labels, images

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of pictures."""
        return path.suffix == ".bin"

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Images from another file of this form; its labels are ignored."""
        _, images = parse(load(path).data, self.MARKS, path_text(path))
        return unseen(_pixels(images), 255.0, facts, path)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Images and labels from another file of this form."""
        samples = _samples(*self._parse(load(path)))
        return self.new_samples(samples.inputs, samples.targets, samples.scale, facts)


@dataclass(frozen=True)
class Cifar100(Cifar10):
    """Colour pictures of 100 kinds, 3 x 32 x 32 in 0..1; test.bin is the test split."""

    NAME = "cifar100"
    TRAIN: ClassVar[tuple[str, ...]] = ("train.bin",)
    TEST: ClassVar[str] = "test.bin"
    MARKS: ClassVar[int] = 2  # the coarse label, then the fine one
    CLASSES: ClassVar[int] = 100
    NAMES: ClassVar[str] = "fine_label_names.txt"
    CONTENTS = "train.bin and test.bin, of the binary version,"
    USUAL = ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))


def rows_in(length: int, marks: int, source: str) -> int:
    """How many rows of `marks` label bytes and 3072 pixels a file of this length has."""
    rows, rest = divmod(length, marks + PIXELS)
    if rest or not rows:
        raise DataError(
            f"{source}: {quantity(length, 'byte')} {verb(length)} no whole number of rows of "
            f"{marks} + {PIXELS} bytes, as the binary version of CIFAR has them",
            code="E302",
        )
    return rows


def parse(data: bytes, marks: int, source: str) -> tuple[bytes, bytes]:
    """The last label byte of each row, and the pixels of all rows."""
    row = marks + PIXELS
    starts = range(0, rows_in(len(data), marks, source) * row, row)
    return data[marks - 1 :: row], b"".join(data[at + marks : at + row] for at in starts)


def _pixels(images: bytes) -> Tensor:
    return tensor_of(images, (len(images) // PIXELS, *SHAPE))


def _samples(labels: bytes, images: bytes) -> Samples:
    return Samples(_pixels(images), tensor_of(labels, (len(labels),)), 255.0)
