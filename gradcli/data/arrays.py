"""Samples that lie in arrays: what .npy files and .npz archives share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gradcli import engine
from gradcli.data import npy
from gradcli.data.array_files import (
    OpenFile,
    is_large,
    npy_header,
    npy_tensor,
    npz_header,
    npz_tensor,
    wait_for,
)
from gradcli.data.cached import Cached
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import path_text, read
from gradcli.data.hashes import gathered
from gradcli.data.image_source import OwnImages, Statistic, splits_of
from gradcli.data.images import check_labels, check_shape, unseen
from gradcli.data.npy import NpyHeader
from gradcli.data.samples import Samples
from gradcli.data.split import check_stratify, unused_of
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError

LABELS = 1 << 20  # checked at once


@dataclass(frozen=True, kw_only=True)
class Arrays(Cached, ScaledTargets, OwnImages):
    """What both formats share: which array is what, and how it is cut and scaled."""

    TEST = "test_inputs"

    inputs: Annotated[str, "the samples, the first dimension counts them"]
    targets: Annotated[str | None, "one whole number a sample, or one or more other numbers"] = None
    test_inputs: Annotated[str | None, "samples of the test split"] = None
    test_targets: Annotated[str | None, "targets of the test split"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.targets is None and self.target == "label":
            raise ConfigError("targets is missing; only target: input does without", code="E104")
        if self.test_targets is not None and self.test_inputs is None:
            raise ConfigError("test_targets needs test_inputs", code="E104")
        if self.test_inputs and (self.test_targets is None) != (self.targets is None):
            raise ConfigError("targets and test_targets go together", code="E104")

    # What a format says.

    def header(self, name: str) -> NpyHeader:
        """The header of an array, without its numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no header")

    def read_array(self, name: str, open_files: dict[Path, OpenFile]) -> Tensor:
        """An array as a tensor, its numbers checked, or about to be checked in the background.

        `open_files` collects the files that are read or mapped.
        """
        raise NotImplementedError(f"{type(self).__name__} has no read_array")

    def title(self, name: str) -> str:
        """An array's name for messages."""
        raise NotImplementedError(f"{type(self).__name__} has no title")

    def roles(self) -> dict[str, str]:
        """The file of each role."""
        raise NotImplementedError(f"{type(self).__name__} has no roles")

    def key(self, name: str) -> str | None:
        """An array's name in an archive; None for one in a file of its own."""
        raise NotImplementedError(f"{type(self).__name__} has no key")

    def at(self, path: Path) -> Arrays:
        """The same for new data: an archive, or a folder with files called as these are."""
        raise NotImplementedError(f"{type(self).__name__} has no at")

    # What follows from that.

    def regression(self, facts: DataSpec) -> bool:
        """Not where inputs are targets too: both are normalised the same way."""
        return self.target == "label" and super().regression(facts)

    def facts(self) -> DataSpec:
        """From the headers; without `classes` the labels are read too."""
        return self.model_facts(self._file_facts())

    def _pairs(self) -> dict[str, tuple[str, str | None]]:
        pairs = {"train": (self.inputs, self.targets)}
        if self.test_inputs:
            pairs["test"] = (self.test_inputs, self.test_targets)
        return pairs

    def _file_facts(self) -> DataSpec:
        heads = {name: self._heads(*pair) for name, pair in self._pairs().items()}
        inputs, targets = heads["train"]
        parts = self.cuts(inputs.shape[0])
        sizes = {name: len(part) for name, part in parts.items()}
        if "test" in heads:
            self._same(heads["train"], heads["test"])
            sizes["test"] = heads["test"][0].shape[0]
        values = targets is not None and is_float(targets)
        first, classes = (0, None) if values or targets is None else self._label_range()
        width = _width(targets) if targets is not None else ()
        check_stratify(self.split, classes)
        return DataSpec(
            input=sample_shape(inputs),
            input_kind="float",
            target=width if values else (),
            classes=classes,
            vocab=None,
            labels=(),
            sizes=sizes,
            first_label=first,
            unused=unused_of(parts, inputs.shape[0]),
        )

    def _heads(self, inputs: str, targets: str | None) -> tuple[NpyHeader, NpyHeader | None]:
        """The headers of samples and targets that go together."""
        x, source = self.header(inputs), self.title(inputs)
        if len(x.shape) < 2 or 0 in x.shape:
            raise DataError(f"{source}: {x} holds no samples", code="E305")
        if targets is None:
            return x, None
        y, theirs = self.header(targets), self.title(targets)
        if not y.shape or y.shape[0] != x.shape[0]:
            raise DataError(f"{source} holds {x}, but {theirs} holds {y}", code="E305")
        if len(y.shape) > 2 or 0 in y.shape or (len(y.shape) == 2 and not is_float(y)):
            raise DataError(
                f"{theirs}: targets must be (N) whole numbers, or (N) or (N, K) floats, found {y}",
                code="E305",
            )
        return x, y

    def _same(
        self, train: tuple[NpyHeader, NpyHeader | None], test: tuple[NpyHeader, NpyHeader | None]
    ) -> None:
        for ours, theirs in zip(train, test, strict=True):
            if ours and theirs and (ours.dtype, ours.shape[1:]) != (theirs.dtype, theirs.shape[1:]):
                raise DataError(
                    f"the test split holds {theirs}, which does not go with {ours}", code="E305"
                )

    def _label_range(self) -> tuple[int, int]:
        """The first class that has a label, and how many classes there are."""
        if self.classes:
            return 0, self.classes
        open_files: dict[Path, OpenFile] = {}
        ranges = [
            label_range(self.read_array(targets, open_files), None, self.title(targets))
            for _, targets in self._pairs().values()
            if targets is not None
        ]
        return min(low for low, _ in ranges), max(high for _, high in ranges) + 1

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """As the headers say; zeros where there are no targets."""
        inputs = self.header(self.inputs)
        targets = self.header(self.targets).dtype if self.targets else "uint8"
        return inputs.dtype, targets, scale_of(inputs), self.mean, self.std

    def load(self) -> LoadedData:
        """All arrays in memory, every label and number checked."""
        facts = self._file_facts()
        self.model_facts(facts)
        open_files: dict[Path, OpenFile] = {}
        whole = {
            name: self._samples(*pair, facts.classes, open_files)
            for name, pair in self._pairs().items()
        }
        train = whole.pop("train")
        splits, notes = splits_of(train, self.cuts(train.size), self.split, facts)
        files = self.roles()
        scales = {"mean": self.mean, "std": self.std}
        dataset = LoadedData(
            source=self,
            facts=DataFacts.of(facts, stored=facts.input, array=self.key(self.inputs), **scales),
            splits={**splits, **whole},
            sha256=gathered({role: open_files[Path(path)].sha256 for role, path in files.items()}),
            files=files,
            notes=(*(note for file in open_files.values() for note in file.notes()), *notes),
        )
        return self.model_view(dataset)

    def _samples(
        self,
        inputs: str,
        targets: str | None,
        classes: int | None,
        open_files: dict[Path, OpenFile],
    ) -> Samples:
        tensors = [
            self.read_array(name, open_files) for name in (inputs, targets) if name is not None
        ]
        x = tensors[0].reshape(tensors[0].shape[0], *sample_shape(self.header(inputs)))
        scale = scale_of(self.header(inputs))
        if targets is None:
            y = engine.zeros(x.shape[0], dtype=engine.uint8)
        else:
            y = checked_targets(tensors[1], classes, self.title(targets))
        return Samples(x, y, scale, self.mean, self.std)

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of arrays."""
        return path.suffix in (".npy", ".npz")

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Samples from an .npy file, or from an archive under the name of the training data.

        Where the training data was an .npy file, the archive must hold one array only.
        """
        open_files: dict[Path, OpenFile] = {}
        if read(path, len(npy.ZIP)) == npy.ZIP:
            name = facts.array or _only_name(path)
            header = npz_header(path, name)
            shape = _new_shape(header, facts, path_text(path))
            numbers = npz_tensor(path, name, open_files, self.cache, large=is_large(header))
        else:
            header = npy_header(path)
            shape = _new_shape(header, facts, path_text(path))
            numbers = npy_tensor(path, open_files, self.cache)
        wait_for(open_files)
        return unseen(numbers.reshape(shape), scale_of(header), facts, path)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Samples and targets under the names of the training data."""
        new = self.at(path)
        open_files: dict[Path, OpenFile] = {}
        x, y = new._heads(new.inputs, new.targets)
        shape = _new_shape(x, facts, new.title(new.inputs))
        inputs = new.read_array(new.inputs, open_files).reshape(shape)
        if y is None or new.targets is None or self.target == "input":
            wait_for(open_files)
            return self.new_samples(inputs, engine.zeros(x.shape[0]), scale_of(x), facts)
        source = new.title(new.targets)
        if is_float(y) != (facts.classes is None) or (is_float(y) and _width(y) != facts.target):
            raise DataError(
                f"{source}: {y} are not targets as the model was trained on", code="E305"
            )
        targets = checked_targets(new.read_array(new.targets, open_files), facts.classes, source)
        wait_for(open_files)
        return self.new_samples(inputs, targets, scale_of(x), facts)


def _only_name(path: Path) -> str:
    """The one array of an archive."""
    source = path_text(path)
    names = npy.names(path, source)
    if len(names) != 1:
        raise DataError(
            f"{source}: it has {', '.join(sorted(names)) or 'no arrays'}; the model was trained on "
            "files of one array each",
            code="E305",
        )
    return names[0]


def _new_shape(header: NpyHeader, facts: DataFacts, source: str) -> tuple[int, ...]:
    """That of all samples of new data; one of them is as those that were trained on."""
    if not header.shape or not header.shape[0]:
        raise DataError(f"{source}: {header} holds no samples", code="E305")
    shape = sample_shape(header)
    check_shape(shape, facts, source)
    return (header.shape[0], *shape)


def checked_targets(targets: Tensor, classes: int | None, source: str) -> Tensor:
    """Values as (N, K), or labels, each of which is checked."""
    if targets.dtype.is_floating_point:
        return targets.reshape(targets.shape[0], -1)
    label_range(targets, classes, source)
    return targets


def label_range(labels: Tensor, classes: int | None, source: str) -> tuple[int, int]:
    """The lowest and the highest label; one outside 0..classes-1 is refused with its sample."""
    low, high = 0, 0
    for begin in range(0, labels.shape[0], LABELS):
        part = labels[begin : begin + LABELS]
        ends = int(part.amin().item()), int(part.amax().item())
        if ends[0] < 0 or (classes is not None and ends[1] >= classes):
            check_labels(part.tolist(), classes, source, begin)
        low = ends[0] if begin == 0 else min(low, ends[0])
        high = max(high, ends[1])
    return low, high


def _width(targets: NpyHeader) -> tuple[int, ...]:
    """The shape of one target of values."""
    return targets.shape[1:] or (1,)


def is_float(header: NpyHeader) -> bool:
    """Whether the numbers are floats."""
    return header.dtype.startswith("float")


def sample_shape(header: NpyHeader) -> tuple[int, ...]:
    """(H, W) of bytes are images and get one channel; all else stays as it is."""
    inner = header.shape[1:]
    return (1, *inner) if len(inner) == 2 and header.dtype == "uint8" else inner


def scale_of(header: NpyHeader) -> float:
    """Bytes are divided by 255, so that they lie in 0..1; other types are taken as they are."""
    return 255.0 if header.dtype == "uint8" else 1.0
