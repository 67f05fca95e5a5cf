"""Pictures of one folder, decoded in parallel: into memory, or once into prepared data."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gradcli.data.decode import DecodedImage, decode_image
from gradcli.data.files import path_text, read
from gradcli.data.samples import tensor_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.packages import version

# What is decoded at each start: fewer pictures than these that take less memory.
SMALL_FILES, SMALL_BYTES = 1000, 64 << 20
READER, VERSION = "pictures", 1  # of prepared data
_MOST_NAMES = 20  # pictures that cannot be read, in one message
_TOGETHER = 1024  # pictures that are handed to the threads at once


def is_small(count: int, shape: Sequence[int]) -> bool:
    """Whether pictures are few enough to decode at each start."""
    return count <= SMALL_FILES and count * math.prod(shape) <= SMALL_BYTES


@dataclass(frozen=True)
class ImageFiles:
    """Pictures in the order of the samples that they become.

    Attributes:
        folder: all paths lie below it; their hash knows them by their names from there on.
        shape: of one picture, a byte a number.
        color: a key of decode.COLORS.
    """

    folder: Path
    paths: Sequence[Path]
    shape: tuple[int, int, int]
    color: str

    def decoded(self) -> Decoded:
        """All of them in memory."""
        pixels = bytearray(len(self.paths) * math.prod(self.shape))
        sha256, losses = decode_into(memoryview(pixels), self, lambda _: None)
        numbers = tensor_of(memoryview(pixels), (len(self.paths), *self.shape))
        return Decoded(numbers, sha256, losses)

    def prepared(self, cache: Path) -> Decoded:
        """All of them mapped, decoded into the cache the first time."""
        return _prepared(self, cache)

    def name(self, path: Path) -> str:
        """A picture's name in the folder."""
        return path.relative_to(self.folder).as_posix()


@dataclass(frozen=True)
class Decoded:
    """Pictures as numbers.

    Attributes:
        pixels: (N, C, H, W) bytes.
        sha256: one hash of all files with their names, in this order.
        losses: what is not in the numbers, and of how many pictures.
    """

    pixels: Tensor
    sha256: str
    losses: Counter[str]


def image_in(path: Path, size: int, color: str) -> tuple[DecodedImage, str]:
    """A picture, and the hash of its file."""
    data = read(path)
    return decode_image(data, size, color, path_text(path)), hashlib.sha256(data).hexdigest()


def decode_into(
    pixels: memoryview[Any], files: ImageFiles, advance: Callable[[int], object]
) -> tuple[str, Counter[str]]:
    """Decode the pictures into `pixels`; return the hash of all files and counts of losses."""
    each, size = math.prod(files.shape), files.shape[-1]

    def decode(index: int) -> tuple[str, tuple[str, ...]] | DataError:
        try:
            image, sha256 = image_in(files.paths[index], size, files.color)
        except DataError as error:
            return error
        pixels[index * each : (index + 1) * each] = image.planes
        return sha256, image.losses

    digest, losses, wrong = hashlib.sha256(), Counter[str](), dict[Path, DataError]()
    for path, result in zip(files.paths, _in_threads(decode, len(files.paths)), strict=True):
        advance(1)
        if isinstance(result, DataError):
            wrong[path] = result
            if len(wrong) > _MOST_NAMES:
                break
            continue
        sha256, reductions = result
        digest.update(_line(sha256, files.name(path)))
        losses.update(reductions)
    if wrong:
        raise _refusal(files, wrong)
    return digest.hexdigest(), losses


def _refusal(files: ImageFiles, wrong: Mapping[Path, DataError]) -> DataError:
    """An error about the first picture that cannot be read, which names the others too."""
    first, *rest = sorted(wrong, key=os.fsencode)
    names = [path_text(files.name(path)) for path in rest]
    notes = (f"these cannot be read either: {', '.join(names)}",) if names else ()
    more = ("there may be more: the reading ended here",) if len(wrong) > _MOST_NAMES else ()
    error = wrong[first]
    cure = f"replace what is damaged, or take it out of {path_text(files.folder)}"
    return DataError(error.message, code=error.code, notes=(*error.notes, *notes, *more, cure))


def hash_of(files: ImageFiles, advance: Callable[[int], object]) -> str:
    """The hash that `decode_into` gives, from the files alone."""

    def hashed(index: int) -> str:
        return hashlib.sha256(read(files.paths[index])).hexdigest()

    digest = hashlib.sha256()
    for path, sha256 in zip(files.paths, _in_threads(hashed, len(files.paths)), strict=True):
        digest.update(_line(sha256, files.name(path)))
        advance(1)
    return digest.hexdigest()


def _line(sha256: str, name: str) -> bytes:
    return f"{sha256}  {name}\n".encode("utf-8", "surrogateescape")


def _in_threads(call: Callable[[int], Any], count: int) -> Iterator[Any]:
    """What the call gives for each number, in order; few of them wait in memory."""
    with ThreadPoolExecutor() as pool:
        for begin in range(0, count, _TOGETHER):
            yield from pool.map(call, range(begin, min(begin + _TOGETHER, count)))


def _prepared(files: ImageFiles, cache: Path) -> Decoded:
    from gradcli.data.prepared.folder_hash import folder_hash
    from gradcli.data.prepared.sets import Recipe, prepared
    from gradcli.data.prepared.writer import Writer

    def write(writer: Writer) -> dict[str, Any]:
        pixels = writer.fixed("pixels", "uint8", (len(files.paths), *files.shape))
        progress = writer.progress(len(files.paths), "picture")
        sha256_now, losses = decode_into(pixels, files, progress.advance)
        if sha256_now != sha256:
            raise DataError(
                f"{path_text(files.folder)}: a picture was edited while they were being prepared; "
                "start again"
            )
        return {"losses": dict(losses)}

    sha256 = folder_hash(files.folder, files.paths, lambda advance: hash_of(files, advance), cache)
    # Another version of Pillow may decode a JPEG to other numbers.
    keys = {"size": files.shape[-1], "color": files.color, "pillow": version("pillow")}
    images = prepared(
        Recipe(READER, VERSION, keys, {"pictures": (files.folder, sha256)}), write, cache
    )
    return Decoded(images.tensor("pixels"), sha256, Counter(images.facts["losses"]))
