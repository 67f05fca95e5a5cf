"""One array of an .npy file or an .npz archive: in memory, or mapped where it is large."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gradcli import engine
from gradcli.data import files, npy
from gradcli.data.files import Loaded, load, path_text, read, regular_size
from gradcli.data.hashes import PendingHash
from gradcli.data.npy import Npy, NpyHeader
from gradcli.data.prepared.cache import cache_folder
from gradcli.data.samples import tensor_of
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data.mapped_array import MappedArray

MAPPED = ("b1", "u1", "i4", "i8", "f4")  # types of which tensors are made as they lie there


class OpenFile(Protocol):
    """A file that was read or mapped."""

    @property
    def sha256(self) -> str | PendingHash:
        """Its hash, perhaps still to come."""

    def notes(self) -> tuple[str, ...]:
        """What is worth telling of it."""


def load_once(path: Path, open_files: dict[Path, OpenFile]) -> Loaded:
    """A file in memory; it is read once."""
    there = open_files.get(path)
    if not isinstance(there, Loaded):
        open_files[path] = there = load(path)
    return there


def wait_for(open_files: Mapping[Path, OpenFile]) -> None:
    """Wait until these files are read to their ends; raise what is wrong with one of them."""
    for file in open_files.values():
        if isinstance(file.sha256, PendingHash):
            file.sha256.result()


def npy_header(path: Path) -> NpyHeader:
    """From the first bytes; the length of the file is compared with it."""
    header = npy.parse_header(read(path, npy.LONGEST + 12), path_text(path), most=None)
    size = regular_size(path)
    if size != header.total:
        raise DataError(
            f"{path_text(path)}: expected {quantity(header.total, 'byte')} from the header "
            f"({header}), got {size}",
            code="E302",
        )
    return header


def is_large(header: NpyHeader) -> bool:
    """Whether an array is mapped, as it lies or as it was prepared."""
    return header.total > files.LARGE


def npy_tensor(path: Path, open_files: dict[Path, OpenFile], cache: str | None) -> Tensor:
    """The array of an .npy file, its numbers checked, or about to be checked in the background."""
    header = npy_header(path)
    if not is_large(header):
        return tensor(npy.parse(load_once(path, open_files).data, path_text(path)), path_text(path))
    if not lies_as_in_tensors(header):
        from gradcli.data.prepared_array import npy_array  # small data does without

        numbers, open_files[path] = npy_array(path, header, cache_folder(cache))
        return numbers
    from gradcli.data.mapped_array import MappedArray

    there = open_files.get(path)
    if not isinstance(there, MappedArray):
        open_files[path] = there = _mapped(path, header)
    return there.tensor


def npz_header(path: Path, name: str) -> NpyHeader:
    """From the first bytes of an array."""
    regular_size(path)
    return npy.peek(path, name, path_text(path))


def npz_tensor(
    path: Path, name: str, open_files: dict[Path, OpenFile], cache: str | None, *, large: bool
) -> Tensor:
    """An array of an archive, its numbers checked; a large one is mapped from prepared data."""
    if not large:
        numbers = npy.unpack(load_once(path, open_files).data, name, path_text(path))
        return tensor(numbers, f"{path_text(path)}, {name}")
    from gradcli.data.prepared_archive import array_in  # small data does without

    rows, archive = array_in(path, name, cache_folder(cache))
    if open_files.setdefault(path, archive).sha256 != archive.sha256:
        raise DataError(f"data file '{path_text(path)}' changed while it was read; start again")
    return rows


def lies_as_in_tensors(header: NpyHeader) -> bool:
    """Whether a file can be mapped as a tensor: type, order and alignment of its numbers fit."""
    transposed = header.swapped or (header.fortran and len(header.shape) > 1)
    return header.type in MAPPED and not transposed and header.length % int(header.type[1]) == 0


def _mapped(path: Path, header: NpyHeader) -> MappedArray:
    """A large array, mapped; truth values and floats are checked in the background."""
    from gradcli.data.mapped_array import MappedArray  # small data does without
    from gradcli.data.prepared.number_checks import Below, Check, FiniteCheck

    dtypes = {"i4": engine.int32, "i8": engine.int64, "f4": engine.float32}
    check: Check | None = None
    if header.type == "f4":
        check = FiniteCheck(header.length, max(1, math.prod(header.shape[1:])))
    elif header.type == "b1":
        check = Below(header.length, 1, 2, "truth value")
    return MappedArray(
        path, dtypes.get(header.type, engine.uint8), header.shape, header.length, check
    )


def tensor(array: Npy, source: str, first: int = 0) -> Tensor:
    """The array as a tensor, rows first; raises for NaN and infinity; row 0 is sample `first`."""
    header = array.header
    if header.fortran:
        transposed = tensor_of(array.numbers, header.shape[::-1])
        numbers = transposed.permute(*range(transposed.ndim)[::-1]).contiguous()
    else:
        numbers = tensor_of(array.numbers, header.shape)
    if numbers.is_floating_point() and numbers.numel():
        bad = engine.isfinite(numbers).logical_not().reshape(-1).to(engine.uint8)
        if bad.amax().item():
            index = int(bad.argmax().item())
            sample = first + index * header.shape[0] // numbers.numel()
            raise DataError(
                f"{source}: sample {sample} holds {numbers.reshape(-1)[index].item()}, "
                "expected numbers of float32",
                code="E305",
            )
    return numbers
