"""Images and labels from IDX files: `data: {name: idx}`, and the checks that MNIST shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gradcli import engine
from gradcli.data import files
from gradcli.data.background import Background
from gradcli.data.cached import Cached
from gradcli.data.dataset import DataSpec, Labelled, LaterInputs, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import Loaded, path_text, read
from gradcli.data.hashes import gathered
from gradcli.data.idx import Idx, IdxHeader, read_header, read_idx
from gradcli.data.image_source import OwnImages, Statistic, splits_of, unlabelled
from gradcli.data.inflate import is_gzip
from gradcli.data.samples import InFiles, Samples, tensor_of
from gradcli.data.split import unused_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data.mapped_array import MappedArray


@dataclass(frozen=True)
class IdxSource(Cached, OwnImages):
    """Images (or plain vectors) and labels in IDX files, gzipped or not."""

    images: Annotated[str, "IDX file of the samples, the first dimension counts them"]
    labels: Annotated[str, "IDX file of the labels, one whole number a sample"]
    test_images: Annotated[str | None, "IDX file of the test samples"] = None
    test_labels: Annotated[str | None, "IDX file of the test labels"] = None
    TEST = "test_images"
    PATH_KEYS = ("images", "labels", "test_images", "test_labels", "cache")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.test_images is None) != (self.test_labels is None):
            raise ConfigError("test_images and test_labels go together", code="E104")

    def facts(self) -> DataSpec:
        """From the headers; without `classes` the labels are read too. Large files are prepared."""
        facts = self.model_facts(self._file_facts())
        for images in (self.images, self.test_images):
            if images is not None and is_prepared(Path(images)):
                large_images(Path(images), self.cache)
        return facts

    def _file_facts(self) -> DataSpec:
        """Facts from the headers of the files."""
        train = self._headers(self.images, self.labels)
        parts = self.cuts(train.shape[0])
        sizes = {name: len(part) for name, part in parts.items()}
        if self.test_images and self.test_labels:
            test = self._headers(self.test_images, self.test_labels)
            same_samples(train, test, self.images, self.test_images)
            sizes["test"] = test.shape[0]
        first, classes = (0, self.classes) if self.classes else self._label_range()
        shape = sample_shape(train)
        unused = unused_of(parts, train.shape[0])
        return DataSpec(
            shape, "float", (), classes, None, (), sizes, first_label=first, unused=unused
        )

    def _headers(self, images: str, labels: str) -> IdxHeader:
        header = read_header(Path(images))
        check_pair(header, read_header(Path(labels)), images, labels)
        return header

    def _label_range(self) -> tuple[int, int]:
        """The first class that has a label, and how many classes there are."""
        labels = set[int]()
        for path in (self.labels, self.test_labels):
            if path is not None:
                labels |= set(label_numbers(read_idx(Path(path))[0], path))
        return max(min(labels), 0), max(*labels, 0) + 1

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """As the headers say."""
        header = read_header(Path(self.images))
        labels = read_header(Path(self.labels)).dtype
        return header.dtype, labels, scale_of(header), self.mean, self.std

    def load(self) -> LoadedData:
        """All files in memory, every label checked."""
        facts = self._file_facts()
        self.model_facts(facts)
        reading = self._begin_reading(facts.classes)
        pairs = {name: pair.result() for name, pair in reading.items()}
        samples = {name: pair.samples(self.mean, self.std) for name, pair in pairs.items()}
        whole = samples.pop("train")
        splits, notes = splits_of(whole, self.cuts(whole.size), self.split, facts)
        files: dict[str, Loaded | MappedArray] = {
            f"{split}.{what}": file
            for split, pair in pairs.items()
            for what, file in (("images", pair.image_file), ("labels", pair.label_file))
        }
        dataset = LoadedData(
            source=self,
            facts=DataFacts.of(facts, stored=facts.input, mean=self.mean, std=self.std),
            splits={**splits, **samples},
            sha256=gathered({role: file.sha256 for role, file in files.items()}),
            files={role: str(file.path) for role, file in files.items()},
            notes=(*(note for file in files.values() for note in file.notes()), *notes),
        )
        return self.model_view(dataset)

    def in_files(self) -> InFiles:
        """Large files."""
        path = Path(self.images)
        return InFiles(sample_shape(read_header(path))) if is_large(path) else InFiles()

    def _begin_reading(self, classes: int | None) -> dict[str, Background[LabelledImages]]:
        """The training files, and the test files where there are any."""
        assert classes is not None
        files = self.images, self.labels
        reading = {"train": Background(lambda: read_pair(*files, classes, self.cache))}
        if self.test_images and self.test_labels:
            test = self.test_images, self.test_labels
            reading["test"] = Background(lambda: read_pair(*test, classes, self.cache))
        return reading

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of samples, and not of labels."""
        return holds_samples(path)

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Samples from another IDX file of the same shape."""
        inputs, scale = read_images(path, facts, self.cache)
        return unseen(inputs, scale, facts, path)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Samples and labels from a folder with files called as those that were trained on."""
        pairs = [(self.test_images, self.test_labels), (self.images, self.labels)]
        images, labels = new_pair(path, pairs)
        inputs, scale = read_images(images, facts, self.cache)
        if labels is None:
            return self.new_samples(inputs, engine.zeros(inputs.shape[0]), scale, facts)
        numbers, source = read_idx(labels)[0], path_text(labels)
        check_pair(read_header(images), numbers.header, str(images), source)
        check_labels(label_numbers(numbers, source), facts.classes, source)
        targets = tensor_of(numbers.numbers, numbers.header.shape)
        return self.new_samples(inputs, targets, scale, facts)


@dataclass(frozen=True)
class LabelledImages:
    """Images and labels that belong together, with their files."""

    header: IdxHeader
    images: Tensor
    labels: Idx
    image_file: Loaded | MappedArray
    label_file: Loaded

    def samples(self, mean: Statistic, std: Statistic) -> Samples:
        """As tensors; bytes will be divided by 255."""
        inputs = self.images.reshape(self.header.shape[0], *sample_shape(self.header))
        targets = tensor_of(self.labels.numbers, self.labels.header.shape)
        return Samples(inputs, targets, scale_of(self.header), mean, std)


def read_pair(images: str, labels: str, classes: int, cache: str | None) -> LabelledImages:
    """Both files; counts, labels and (for float images) numbers checked; large images mapped."""
    label_idx, label_file = read_idx(Path(labels))
    check_labels(label_numbers(label_idx, labels), classes, labels)
    if is_large(Path(images)):
        header = read_header(Path(images))
        check_pair(header, label_idx.header, images, labels)
        numbers, file = large_images(Path(images), cache)
        return LabelledImages(header, numbers, label_idx, file, label_file)
    image_idx, image_file = read_idx(Path(images))
    check_pair(image_idx.header, label_idx.header, images, labels)
    check_finite(image_idx, images)
    inputs = tensor_of(image_idx.numbers, image_idx.header.shape)
    return LabelledImages(image_idx.header, inputs, label_idx, image_file, label_file)


def is_large(path: Path) -> bool:
    """Whether the content of a file is mapped, as it lies or as it was prepared."""
    return read_header(path).total > files.LARGE


def is_prepared(path: Path) -> bool:
    """Whether a file is large and packed, or of numbers whose bytes have an order."""
    return is_large(path) and (is_gzip(read(path, 2)) or read_header(path).dtype != "uint8")


def large_images(path: Path, cache: str | None) -> tuple[Tensor, Loaded | MappedArray]:
    """The numbers of a large file, mapped, and the file."""
    header = read_header(path)
    if is_prepared(path):
        from gradcli.data.prepared.cache import cache_folder  # few are so large
        from gradcli.data.prepared_array import idx_array

        return idx_array(path, header, cache_folder(cache))
    from gradcli.data.mapped_array import MappedArray

    mapped = MappedArray(path, engine.uint8, header.shape, header.length, None)
    return mapped.tensor, mapped


def new_pair(
    path: Path, pairs: Sequence[tuple[str | None, str | None]]
) -> tuple[Path, Path | None]:
    """The files of inputs and targets in a folder, named as in the first of `pairs` that is there.

    A single file holds inputs without targets, for models whose target is the input.
    """
    known_pairs = [(inputs, targets) for inputs, targets in pairs if inputs is not None]
    if path.is_file() and all(targets is None for _, targets in known_pairs):
        return path, None
    for inputs, targets in known_pairs:
        both = _beside(path, inputs), _beside(path, targets or inputs)
        if both[0] is not None and both[1] is not None:
            return both[0], both[1] if targets else None
    names = " or ".join(
        " and ".join(Path(name).name for name in pair if name) for pair in known_pairs
    )
    raise DataError(
        f"{path_text(path)}: expected a folder that holds {path_text(names)}, named as the "
        "training data"
    )


def _beside(folder: Path, name: str) -> Path | None:
    """The file of the same name in `folder`, gzipped or not."""
    plain = Path(name).name.removesuffix(".gz")
    return next((path for path in (folder / plain, folder / f"{plain}.gz") if path.is_file()), None)


def holds_samples(path: Path) -> bool:
    """Whether the header of a file is one of IDX samples."""
    try:
        return len(read_header(path).shape) > 1
    except DataError:
        return False


def read_images(path: Path, facts: DataFacts, cache: str | None = None) -> tuple[Tensor, float]:
    """Samples of one IDX file and what divides them, of the shape that was trained on."""
    header, source = read_header(path), path_text(path)
    _not_empty(header, source)
    shape = sample_shape(header)
    check_shape(shape, facts, source)
    if is_large(path):
        images, file = large_images(path, cache)
        gathered({"images": file.sha256})["images"]  # waits until it is read
    else:
        numbers, _ = read_idx(path)
        check_finite(numbers, source)
        images = tensor_of(numbers.numbers, numbers.header.shape)
    return images.reshape(header.shape[0], *shape), scale_of(header)


def check_shape(shape: Sequence[int], facts: DataFacts, source: str) -> None:
    """Raise unless samples of a new file have the shape of the training data."""
    expected = facts.stored or facts.input
    if tuple(shape) != expected:
        raise DataError(
            f"{source}: samples are {tuple(shape)}, the model was trained on {expected}",
            code="E305",
        )


def unseen(rows: Tensor, scale: float, facts: DataFacts, path: Path) -> Unseen:
    """All samples of one new file, padded and scaled like the training data."""
    samples = unlabelled(rows, scale, facts)
    indices = range(samples.size)
    inputs = LaterInputs((samples.size, *facts.input), lambda some: samples.batch(some)[0])
    return Unseen(inputs, [f"{path.name}:{index}" for index in indices], indices)


def sample_shape(header: IdxHeader) -> tuple[int, ...]:
    """(H, W) images get one channel; (F,) vectors and (C, H, W) images stay as they are."""
    inner = header.shape[1:]
    return (1, *inner) if len(inner) == 2 else inner


def scale_of(header: IdxHeader) -> float:
    """Bytes are divided by 255, so that they lie in 0..1; other types are taken as they are."""
    return 255.0 if header.dtype == "uint8" else 1.0


def check_pair(images: IdxHeader, labels: IdxHeader, images_name: str, labels_name: str) -> None:
    """Both have samples, equally many; labels are one whole number each."""
    _not_empty(images, path_text(images_name))
    if len(images.shape) < 2 or 0 in images.shape:
        raise DataError(f"{path_text(images_name)}: {images} holds no samples", code="E305")
    if len(labels.shape) != 1 or labels.dtype.startswith("float"):
        raise DataError(
            f"{path_text(labels_name)}: labels must be one whole number a sample, found {labels}",
            code="E305",
        )
    if images.shape[0] != labels.shape[0]:
        raise DataError(
            f"{quantity(images.shape[0], 'image')} in {path_text(images_name)}, but "
            f"{quantity(labels.shape[0], 'label')} in {path_text(labels_name)}",
            code="E305",
        )


def same_samples(train: IdxHeader, test: IdxHeader, train_name: str, test_name: str) -> None:
    """Training and test samples have one shape and type."""
    if train.shape[1:] != test.shape[1:] or train.dtype != test.dtype:
        raise DataError(
            f"{path_text(test_name)} holds {test}, which does not go with {train} "
            f"in {path_text(train_name)}",
            code="E305",
        )


def label_numbers(labels: Idx, source: str) -> Any:
    """The labels as a flat sequence of int; negative ones are refused."""
    check_labels(labels.numbers, None, source)
    return labels.numbers


def check_labels(labels: Any, classes: int | None, source: str, first: int = 0) -> None:
    """Every label lies in 0..classes-1 (None: any limit); raise at the first that does not.

    `first` is the number of the first sample.
    """
    limit = math.inf if classes is None else classes
    if all(0 <= label < limit for label in set(labels)):
        return
    index = next(i for i, label in zip(count(), labels, strict=False) if not 0 <= label < limit)
    limits = (
        "0 or more" if classes is None else f"0 to {classes - 1} ({quantity(classes, 'class')})"
    )
    raise DataError(
        f"{path_text(source)}: sample {first + index} has label {labels[index]}, expected {limits}",
        code="E305",
    )


def check_finite(images: Idx, source: str, first: int = 0) -> None:
    """No NaN or infinity among float samples, which begin with number `first`."""
    if not images.header.dtype.startswith("float"):
        return
    index = next((i for i, x in enumerate(images.numbers) if not math.isfinite(x)), None)
    if index is not None:
        sample = first + index // math.prod(images.header.shape[1:])
        raise DataError(
            f"{path_text(source)}: sample {sample} holds {images.numbers[index]}, expected numbers",
            code="E305",
        )


def _not_empty(header: IdxHeader, source: str) -> None:
    if header.shape[0] == 0:
        raise DataError(f"{source}: the dataset is empty: {header}", code="E305")
