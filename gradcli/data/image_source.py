"""What all image sets take: a size to pad to, targets that are the images, numbers to normalise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from gradcli import engine
from gradcli.data.augment import Mixup, transforms
from gradcli.data.augmented import Augmented
from gradcli.data.cached import locate_cache
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Split
from gradcli.data.facts import DataFacts
from gradcli.data.files import expanded, locate, nearest
from gradcli.data.samples import InFiles, Samples, framed, outlined, padded
from gradcli.data.split import SplitMap, cut, stratify_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError

Statistic = float | tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """The keys that every image set has beside its own."""

    size: Annotated[
        int | None, "images are padded with zeros on all sides to this height and width"
    ] = None
    target: Annotated[
        Literal["label", "input"],
        "what is predicted: the label, or the image itself (autoencoders)",
    ] = "label"

    augment: Annotated[
        list[str | dict[str, Any]] | None,
        "what happens to training images, anew in each epoch: [crop, hflip]",
    ] = None

    def __post_init__(self) -> None:
        transforms(self.augment or ())
        if self.size is not None and not 1 <= self.size <= 1 << 14:
            raise ConfigError(f"size must be 1 to {1 << 14}, got {self.size}", code="E104")

    def model_facts(self, facts: DataSpec) -> DataSpec:
        """The facts of the stored images, as a model sees them."""
        shape = self._padded_shape(facts.input)
        if self.augment and len(shape) != 3:
            raise DataError(
                f"augment changes images (C, H, W), here each sample is {shape}", code="E305"
            )
        if self.target == "label":
            mixed = any(isinstance(each, Mixup) for each in transforms(self.augment or ()))
            return replace(facts, input=shape, mixed=mixed)
        return replace(facts, input=shape, target=shape, classes=None, labels=())

    def _padded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.size is None:
            return shape
        if len(shape) != 3 or max(shape[1:]) > self.size:
            raise DataError(
                f"size: {self.size} pads images (C, H, W) that are no larger, here each sample "
                f"is {shape}",
                code="E305",
            )
        return (shape[0], self.size, self.size)

    def model_view(self, dataset: LoadedData) -> LoadedData:
        """The dataset as a model sees it: images padded to its input, splits with its targets."""
        facts = self.model_facts(dataset.facts)
        splits: dict[str, Samples] = {}
        for name, split in dataset.splits.items():
            assert isinstance(split, Samples)
            splits[name] = self._framed(split, facts.input)
        return replace(dataset, facts=facts, splits=self.as_trained(splits, facts))

    def _framed(self, split: Samples, shape: tuple[int, ...]) -> Samples:
        """The samples padded; those of a mapped file are when they come into a batch."""
        if split.inputs.shape[1:] == shape:
            return split
        if self.in_files().inputs is not None:
            return replace(split, frame=shape)
        split = split.gathered()
        return replace(split, inputs=padded(split.inputs, shape))

    def in_files(self) -> InFiles:
        """What is mapped where it lies: nothing, but in formats that say so."""
        return InFiles()

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that are not of pictures or arrays, each with what is expected."""
        if facts.stored is None:
            yield "stored", "expected the shape of a sample in its file"
        elif self.size is not None and facts.input[1:] != (self.size, self.size):
            yield "input", f"expected pictures of {self.size} x {self.size}"

    def new_samples(
        self, inputs: Tensor, targets: Tensor, scale: float, facts: DataFacts
    ) -> Labelled:
        """Pictures or arrays of new files, scaled as those that were trained on."""
        alone, itself = unlabelled(inputs, scale, facts), self.target == "input"
        return Labelled(replace(alone, targets=targets, itself=itself))

    def as_trained(self, splits: Mapping[str, Samples], facts: DataSpec) -> dict[str, Split]:
        """Splits of padded images with their targets, and changes while training."""
        itself = self.target == "input"
        result: dict[str, Split] = {n: replace(each, itself=itself) for n, each in splits.items()}
        if self.augment:
            train = replace(splits["train"], itself=itself)
            result["train"] = Augmented(train, transforms(self.augment), facts.classes)
        return result

    def outline(self, facts: DataSpec) -> dict[str, Split]:
        """The splits as `load` makes them, on "meta"."""
        file_facts = facts if self.target == "label" else replace(facts, target=())
        splits = outlined(file_facts, *self.stored_types(), self.in_files())
        split: SplitMap = getattr(self, "split", None) or {}
        if stratify_of(split):
            for name in splits.keys() & split.keys():
                rows = engine.empty(splits[name].size, dtype=engine.int64, device="meta")
                splits[name] = replace(splits[name], rows=rows)
        return self.as_trained(splits, facts)

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """Types of images and targets in the files, what images are divided by, mean, deviation."""
        raise NotImplementedError(f"{type(self).__name__} has no stored_types")


@dataclass(frozen=True, kw_only=True)
class OwnImages(ImageSource):
    """The keys of samples in files of one's own: how they are found, cut and scaled."""

    PATH_KEYS: ClassVar[tuple[str, ...]]
    TEST: ClassVar[str]  # the key of the samples of the test split

    classes: Annotated[int | None, "labels are 0..classes-1; left out: the highest label + 1"] = (
        None
    )
    split: Annotated[SplitMap | None, "counts or percents of samples for train, val (and test)"] = (
        None
    )
    mean: Annotated[float, "subtracted, after bytes became 0..1"] = 0.0
    std: Annotated[float, "divided by, after `mean`"] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes is not None and self.classes < 1:
            raise ConfigError(f"classes must be 1 or more, got {self.classes}", code="E104")
        if not self.std > 0:
            raise ConfigError(f"std must be above 0, got {self.std}", code="E104")

    def locate(self, root: Path) -> Self:
        """The paths made absolute."""
        files = {key: getattr(self, key) for key in self.PATH_KEYS if key != "cache"}
        paths: dict[str, Any] = {
            key: str(locate(path, root)) for key, path in files.items() if path is not None
        }
        if (cache := getattr(self, "cache", None)) is not None:
            paths["cache"] = locate_cache(cache, root)
        return replace(self, **paths)

    def cuts(self, total: int) -> dict[str, range]:
        """The splits of the training samples; the test split too, where it has no files."""
        names = ("train", "val") if getattr(self, self.TEST) else ("train", "val", "test")
        return cut(self.split or {"train": "100%"}, total, names)


@dataclass(frozen=True)
class KnownImages(ImageSource):
    """The keys of published sets: where they lie, how they are cut and normalised."""

    PATH_KEYS: ClassVar = ("dir",)
    NAME: ClassVar[str]
    USUAL: ClassVar[tuple[Statistic, Statistic]]  # mean and deviation, in 0..1
    CHANNELS: ClassVar[int]
    CONTENTS: ClassVar[str]  # what belongs in the folder, for messages

    dir: Annotated[str | None, "folder of the files; left out: the nearest datasets/NAME"] = None
    split: Annotated[
        SplitMap | None, "counts or percents of the training images: train and val"
    ] = None
    normalize: Annotated[
        bool | dict[str, Any],
        "subtract the usual mean and divide by the usual deviation of each channel; or these",
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.statistics()

    def statistics(self) -> tuple[Statistic, Statistic]:
        """Mean and deviation as `normalize` says."""
        return normalization(self.normalize, self.USUAL, self.CHANNELS)

    def locate(self, root: Path) -> Self:
        """With the folder that holds the files."""
        own = None if self.dir is None else root.resolve() / expanded(self.dir)
        folder = nearest(self.NAME, root, own, self.CONTENTS)
        self.paths(folder)
        return replace(self, dir=str(folder))

    def paths(self, folder: Path) -> dict[str, str]:
        """The files in a folder, by what each is; all of them must be there."""
        raise NotImplementedError(f"{type(self).__name__} has no paths")


def unlabelled(inputs: Tensor, scale: float, facts: DataFacts) -> Samples:
    """New pictures or arrays as autoencoders see them: padded and scaled as in the training."""
    frame = framed(inputs.shape[1:], facts.input)
    return Samples(inputs, inputs, scale, facts.mean, facts.std, itself=True, frame=frame)


def splits_of(
    whole: Samples, parts: Mapping[str, range], split: SplitMap | None, facts: DataSpec
) -> tuple[dict[str, Samples], tuple[str, ...]]:
    """The splits of samples with labels, as `split` says, and what there is to tell of them."""
    if not stratify_of(split):
        return {name: whole.part(part) for name, part in parts.items()}, ()
    from gradcli.data.cuts import shared_out  # few ask for it

    return shared_out(whole, parts, facts)


def normalization(
    value: bool | dict[str, Any], usual: tuple[Statistic, Statistic], channels: int
) -> tuple[Statistic, Statistic]:
    """(mean, std) that `normalize:` asks for; `usual` are those of `true`."""
    if value is False:
        return 0.0, 1.0
    if value is True:
        return usual
    if set(value) != {"mean", "std"}:
        raise ConfigError(
            f"normalize must be true, false or {{mean: ..., std: ...}}, got {value}", code="E104"
        )
    mean, std = (_statistic(name, value[name], channels) for name in ("mean", "std"))
    if min(std if isinstance(std, tuple) else (std,)) <= 0:
        raise ConfigError(f"normalize.std must be above 0, got {value['std']}", code="E104")
    return mean, std


def _statistic(name: str, value: Any, channels: int) -> Statistic:
    numbers = value if isinstance(value, list) else [value]
    numeric = all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
    if not numeric or (isinstance(value, list) and len(value) != channels):
        raise ConfigError(
            f"normalize.{name} must be a finite number or a list of {channels}, one for each "
            f"channel, got {value}",
            code="E104",
        )
    return tuple(map(float, numbers)) if len(numbers) > 1 else float(numbers[0])
