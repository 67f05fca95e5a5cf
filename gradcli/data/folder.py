"""Pictures in files: `data: {name: image_folder}`, a folder for each class."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from gradcli.data.cached import Cached, locate_cache
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Unseen
from gradcli.data.decode import COLORS, planes, planes_of, require_pillow
from gradcli.data.facts import DataFacts
from gradcli.data.files import (
    as_text,
    expanded,
    is_folder,
    near_names,
    path_text,
    unreadable,
)
from gradcli.data.image_files import Decoded, ImageFiles, image_in, is_small
from gradcli.data.image_formats import SUFFIXES
from gradcli.data.image_source import ImageSource, Statistic, normalization, splits_of
from gradcli.data.images import check_shape, unseen
from gradcli.data.prepared.cache import cache_folder
from gradcli.data.samples import InFiles, Samples, scaled, tensor_of
from gradcli.data.split import SplitMap, cut, shuffled, unused_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import join_words, quantity, verb

MOST_NAMES = 3  # files that are left out, in a sentence
# Of ImageNet, in 0..1; for one channel their weighted mean.
USUAL: dict[str, tuple[Statistic, Statistic]] = {
    "rgb": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "gray": (0.456, 0.224),
}


@dataclass(frozen=True)
class Listing:
    """The pictures of one folder: paths, the class number of each, and the files left out."""

    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    left_out: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class ImageFolder(Cached, ImageSource):
    """One folder per class; all pictures are resized to one size. Needs the extra `images`."""

    PATH_KEYS: ClassVar = ("dir", "test_dir", "cache")

    dir: Annotated[str, "folder of the class folders"]
    size: Annotated[
        int, "the shorter side becomes this long, of the longer one the middle is kept"
    ] = field()  # required here, whatever it is above
    test_dir: Annotated[str | None, "the same with the pictures of the test split"] = None
    color: Annotated[Literal["rgb", "gray"], "3 channels, or 1"] = "rgb"
    split: Annotated[SplitMap | None, "counts or percents for train, val (and test)"] = None
    seed: Annotated[int, "which picture goes to which split"] = 0
    normalize: Annotated[
        bool | dict[str, Any], "subtract ImageNet's means and divide by its deviations; or these"
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > 4096:
            raise ConfigError(f"size must be 1 to 4096, got {self.size}", code="E104")
        self._statistics()

    def _statistics(self) -> tuple[Statistic, Statistic]:
        return normalization(self.normalize, USUAL[self.color], COLORS[self.color][1])

    @property
    def _shape(self) -> tuple[int, int, int]:
        return (COLORS[self.color][1], self.size, self.size)

    def locate(self, root: Path) -> Self:
        """With absolute folders; Pillow must be there."""
        require_pillow()
        paths: dict[str, Any] = {"cache": locate_cache(self.cache, root)}
        for key in ("dir", "test_dir"):
            if (config_path := getattr(self, key)) is not None:
                folder = Path(os.path.abspath(root / expanded(config_path)))  # noqa: PTH100
                if not is_folder(folder):
                    raise DataError(
                        f"data folder '{path_text(config_path)}' ({path_text(folder)}) is no "
                        "folder",
                        notes=() if folder.exists() else near_names(folder),
                    )
                paths[key] = str(folder)
        return replace(self, **paths)

    def facts(self) -> DataSpec:
        """From the names of the folders and files; many pictures are prepared now."""
        facts = self.model_facts(self._file_facts(*self._listings))
        if self._prepares:
            _ = self._decoded
        return facts

    @property
    def _prepares(self) -> bool:
        """Whether they are decoded once, and not at each start."""
        files = self._files.values()
        return not is_small(sum(len(each.paths) for each in files), self._shape)

    @cached_property
    def _files(self) -> dict[str, ImageFiles]:
        folders = {"train": self.dir, "test": self.test_dir or ""}
        listings = self._listings[1].items()
        return {name: self._in_order(each, folders[name]) for name, each in listings}

    @cached_property
    def _decoded(self) -> dict[str, Decoded]:
        """All of them prepared; checked once."""
        cache = cache_folder(self.cache)
        return {name: files.prepared(cache) for name, files in self._files.items()}

    def in_files(self) -> InFiles:
        """Pictures that are prepared are mapped."""
        with suppress(DataError):  # they need not be there any more
            return InFiles(self._shape if self._prepares else None)
        return InFiles()

    @cached_property
    def _listings(self) -> tuple[tuple[str, ...], dict[str, Listing]]:
        """The classes, and the pictures of each folder."""
        folders = class_folders(Path(self.dir))
        classes = tuple(folders)
        listings = {"train": list_images(folders, classes)}
        if self.test_dir is not None:
            folders = class_folders(Path(self.test_dir))
            odd = set(folders) - set(classes)
            if odd:
                raise DataError(
                    f"{path_text(self.test_dir)} has the class '{path_text(min(odd))}', which "
                    f"{path_text(self.dir)} does not have",
                    code="E305",
                )
            listings["test"] = list_images(folders, classes)
        return classes, listings

    def _file_facts(self, classes: tuple[str, ...], listings: Mapping[str, Listing]) -> DataSpec:
        total = len(listings["train"].paths)
        parts = self._cuts(total)
        sizes = {name: len(part) for name, part in parts.items()}
        if "test" in listings:
            sizes["test"] = len(listings["test"].paths)
        unused = unused_of(parts, total)
        return DataSpec(self._shape, "float", (), len(classes), None, classes, sizes, unused=unused)

    def _cuts(self, total: int) -> dict[str, range]:
        names = ("train", "val") if self.test_dir else ("train", "val", "test")
        return cut(self.split or {"train": "100%"}, total, names)

    def stored_types(self) -> tuple[str, str, float, Statistic, Statistic]:
        """Bytes, and the number of the folder."""
        return "uint8", "int32", 255.0, *self._statistics()

    def load(self) -> LoadedData:
        """Every picture decoded, now or in prepared data, shuffled by `seed`."""
        classes, listings = self._listings
        facts = self._file_facts(classes, listings)
        files = self._files
        decoded = self._decoded if self._prepares else {n: files[n].decoded() for n in files}
        whole = {name: self._samples(listings[name], decoded[name]) for name in decoded}
        losses = sum((each.losses for each in decoded.values()), Counter[str]())
        train = whole.pop("train")
        splits, notes = splits_of(train, self._cuts(train.size), self.split, facts)
        mean, std = self._statistics()
        left_out = [path for each in listings.values() for path in each.left_out]
        dataset = LoadedData(
            source=self,
            facts=DataFacts.of(facts, stored=facts.input, mean=mean, std=std),
            splits={**splits, **whole},
            sha256={name: each.sha256 for name, each in decoded.items()},
            files={name: str(each.folder) for name, each in files.items()},
            notes=(*_notes(left_out, losses), *notes),
        )
        return self.model_view(dataset)

    def _in_order(self, listing: Listing, folder: str) -> ImageFiles:
        order = shuffled(len(listing.paths), self.seed)
        paths = [listing.paths[i] for i in order]
        return ImageFiles(Path(folder), paths, self._shape, self.color)

    def _samples(self, listing: Listing, decoded: Decoded) -> Samples:
        """The pictures with the numbers of their classes."""
        order = shuffled(len(listing.labels), self.seed)
        labels = tensor_of(array("i", (listing.labels[i] for i in order)), (len(order),))
        return Samples(decoded.pixels, labels, 255.0, *self._statistics())

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of pictures."""
        return path.suffix.lower() in SUFFIXES

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """One picture."""
        check_shape(self._shape, facts, path_text(path))
        image, _ = image_in(path, self.size, self.color)
        pixels = tensor_of(image.planes, (1, *self._shape))
        return replace(unseen(pixels, 255.0, facts, path), names=[path.name])

    def new_images(self, images: Sequence[Any], facts: DataFacts, source: str) -> Tensor:
        """The inputs of pictures that Pillow has opened, and of the bytes of files."""
        check_shape(self._shape, facts, source)
        pixels = b"".join(
            planes(image, self.size, self.color, source)
            if isinstance(image, bytes)
            else planes_of(image, self.size, self.color, source)
            for image in images
        )
        return scaled(tensor_of(pixels, (len(images), *self._shape)), 255.0, facts.mean, facts.std)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """The pictures of another folder of class folders."""
        listing = self._known_images(path, facts.labels)
        files = self._in_order(listing, str(path))
        few = is_small(len(files.paths), self._shape)
        decoded = files.decoded() if few else files.prepared(cache_folder(self.cache))
        samples = self._samples(listing, decoded)
        split = self.new_samples(samples.inputs, samples.targets, samples.scale, facts)
        return replace(split, notes=_notes(listing.left_out, decoded.losses))

    def _known_images(self, folder: Path, classes: tuple[str, ...]) -> Listing:
        """The pictures of a folder that has no class but these."""
        folders = class_folders(folder)
        odd = set(folders) - set(classes)
        if odd and classes:
            raise DataError(
                f"{path_text(folder)} has the class '{path_text(min(odd))}', which the model does "
                f"not know; known: {path_text(join_words(classes))}",
                code="E305",
            )
        return list_images(folders, classes or tuple(folders))


def _notes(left_out: Sequence[Path], losses: Counter[str]) -> tuple[str, ...]:
    number, be = quantity(len(left_out), "file"), verb(len(left_out))
    kinds = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    what = f"{number} {be} no {kinds} and {be} left out: {_first(left_out)}"
    notes = (what,) if left_out else ()
    return (*notes, *(_loss(count, loss) for loss, count in sorted(losses.items())))


def _first(files: Sequence[Path]) -> str:
    """Some files of folders of classes, enough to see of what kind they are."""
    return join_words((path_text(Path(path.parent.name, path.name)) for path in files), MOST_NAMES)


def _loss(count: int, loss: str) -> str:
    return f"{quantity(count, 'picture')} {verb(count)} {loss}"


def class_folders(folder: Path) -> dict[str, Path]:
    """The folders in a folder by class name, sorted by the bytes of names."""
    folders = sorted((each for each in _entries(folder) if each.is_dir()), key=os.fsencode)
    if not folders:
        raise DataError(
            f"{path_text(folder)} holds no folders; each class is a folder of pictures", code="E305"
        )
    return {as_text(each.name): each for each in folders}


def list_images(folders: Mapping[str, Path], classes: tuple[str, ...]) -> Listing:
    """The pictures of each class that has a folder, sorted by bytes; none may be empty."""
    paths: list[Path] = []
    labels: list[int] = []
    left_out: list[Path] = []
    for number, name in enumerate(classes):
        if name not in folders:
            continue  # the test split need not have each class
        inside = sorted(_entries(folders[name]), key=os.fsencode)
        fit = [each for each in inside if each.suffix.lower() in SUFFIXES]
        if not fit:
            instead = f", and not {_first(inside)}" if inside else ""
            raise DataError(
                f"{path_text(folders[name])} holds no picture; {', '.join(SUFFIXES)} are "
                f"read{instead}",
                code="E305",
            )
        paths += fit
        labels += [number] * len(fit)
        left_out += [each for each in inside if each.suffix.lower() not in SUFFIXES]
    return Listing(tuple(paths), tuple(labels), tuple(left_out))


def _entries(folder: Path) -> Iterator[Path]:
    """What lies in a folder, but for hidden files."""
    try:
        yield from (each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError as error:
        raise unreadable(path_text(folder), error) from None
