"""Reading files whole and safely: regular files only, a size limit, a hash of each."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from gradcli.data.inflate import TRUSTED_TEXT, inflate, is_gzip
from gradcli.data.sums import SUMS, Sums, parsed
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.registry import closest
from gradcli.wording import quantity

FILE_LIMIT = 4 << 30
LARGE = 64 << 20  # of a file of plain numbers: from here on it is mapped where it lies
SUMS_LIMIT = 16 << 20  # of a list of hashes: some 100,000 files
UNPACKED_LIMIT = 256 << 20  # for formats that do not say how long they are: text and tables
_LOOKED_AT = 1000  # names in a folder, for one that was mistyped
_TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}
KNOWN_SETS = _TITLES.keys()


def path_text(path: Path | str) -> str:
    """A path for a message: control characters and odd bytes escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in as_text(path))


def as_text(path: Path | str) -> str:
    r"""A path or name that any file can hold: a byte that is no UTF-8 stands there as `\xe9`."""
    return "".join(
        f"\\x{ord(c) - 0xDC00:x}" if "\udc80" <= c <= "\udcff" else c for c in os.fsdecode(path)
    )


def locate(config_path: str, root: Path) -> Path:
    """The absolute path of a file, from the path in a config; `root` is the config's folder."""
    path = Path(os.path.abspath(root / expanded(config_path)))  # noqa: PTH100 -- keeps links
    regular_size(path, config_path)
    return path


def expanded(config_path: str) -> Path:
    """A path with `~` replaced by the home folder, where there is one."""
    try:
        return Path(config_path).expanduser()
    except RuntimeError as error:
        raise DataError(f"'{path_text(config_path)}': {str(error).lower()} of '~'") from None


def nearest(name: str, root: Path, setting: Path | None, files: str = "its files") -> Path:
    """The folder of a well-known dataset: the one in `setting`, or the nearest `datasets/NAME`.

    Looks under the config's folder `root`, under each folder above it, and under the current
    one. `files` says in errors what belongs in the folder.
    """
    folder = root.resolve()
    candidates = [above / "datasets" / name for above in (folder, *folder.parents)]
    here = Path.cwd() / "datasets" / name
    folders = [setting] if setting else [*candidates, *([] if here in candidates else [here])]
    # Skip folders that may not be read, unless the config names one.
    there = is_folder if setting else os.path.isdir
    for folder in folders:
        if there(folder):
            return folder
    notes = tuple(f"looked in: {path_text(folder)}" for folder in folders)
    raise DataError(
        f"the {_TITLES.get(name, name)} files are not there",
        notes=(
            *notes,
            f"write data: {{name: {name}, dir: FOLDER}} to say where they are",
            f"or put {files} into {path_text(folders[0])}",
        ),
    )


def is_folder(path: Path) -> bool:
    """Whether a folder is there; a name that cannot be asked for is refused with the reason."""
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise unreadable(f"data folder '{path_text(path)}'", error) from None


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in the folders inside it, sorted by bytes; not the hidden ones."""
    try:
        inside = sorted(folder.iterdir(), key=os.fsencode)
    except OSError as error:
        raise unreadable(path_text(folder), error) from None
    open_ones = [path for path in inside if not path.name.startswith(".")]
    groups = [files_below(path) if _is_true_folder(path) else [path] for path in open_ones]
    return [path for several in groups for path in several]


def _is_true_folder(path: Path) -> bool:
    """A folder, and no link to one, which may lead in a circle."""
    return path.is_dir() and not path.is_symlink()


def near_names(path: Path) -> tuple[str, ...]:
    """A note with the nearest name that lies where `path` was looked for, if there is one."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _LOOKED_AT)]
    except OSError:
        return (f"the folder {path_text(path.parent)} does not exist or cannot be read",)
    near = closest(path.name, names)
    return (f"did you mean {path_text(near)}?",) if near else ()


def regular_size(path: Path, config_path: str = "") -> int:
    """Bytes of a regular file, without opening it; raises a DataError for anything else."""
    name = _both_names(path, config_path)
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            target = path_text(path.readlink())
            raise DataError(f"data file {name} is a broken link to '{target}'") from None
        raise DataError(f"data file {name} does not exist", notes=near_names(path)) from None
    except (OSError, ValueError) as error:
        raise unreadable(f"data file {name}", error) from None
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"data file {name} is {_kind(status.st_mode)}, not a regular file")
    return status.st_size


def read(path: Path, count: int | None = None) -> bytes:
    """The bytes of a regular file; with `count`, only the first ones."""
    size = regular_size(path)
    if count is None and size > FILE_LIMIT:
        raise DataError(
            f"data file '{path_text(path)}' has {quantity(size, 'byte')}; at most {FILE_LIMIT} are "
            "read"
        )
    length = size if count is None else min(count, size)
    with reading(path) as raw, io.BufferedReader(raw) as file:
        data = file.read(length)
        longer = count is None and file.read(1)
    if len(data) != length or longer:
        raise DataError(f"data file '{path_text(path)}' changed while it was read; start again")
    return data


@contextmanager
def reading(path: Path) -> Iterator[io.FileIO]:
    """A regular file, open inside the block; an error of the system becomes a DataError."""
    try:
        with open_regular(path) as file:
            yield file
    except OSError as error:
        raise unreadable(f"data file '{path_text(path)}'", error) from None


def open_regular(path: Path) -> io.FileIO:
    """A regular file without a buffer, open for reading."""
    try:
        # Without O_NONBLOCK, a pipe put in the file's place meanwhile would stall us for ever.
        file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        raise unreadable(f"data file '{path_text(path)}'", error) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError(f"data file '{path_text(path)}' is no longer a regular file")
    return file


def unreadable(what: str, error: Exception) -> DataError:
    """The error for what the system does not let us read, with its reason."""
    return DataError(f"{what} cannot be read: {reason_of(error)}")


@dataclass(frozen=True)
class Loaded:
    """One file in memory.

    Attributes:
        data: the bytes as they lie in the file.
        sha256: their hash, already compared with SHA256SUMS where that lists the file.
        elsewhere: a file of this name in another folder, which SHA256SUMS lists in its place.
    """

    path: Path
    data: bytes
    sha256: str
    elsewhere: str | None = None

    def unpacked(self) -> bytes:
        """The content: gzip is recognised by its first bytes, under any name."""
        if not is_gzip(self.data):
            return self.data
        return bytes(inflate(self.data, UNPACKED_LIMIT, path_text(self.path), TRUSTED_TEXT))

    def notes(self) -> tuple[str, ...]:
        """What is worth telling: gzip under a name that does not say so, a hash not compared."""
        notes = _gzip_notes(self.path, self.data)
        if self.elsewhere is None:
            return notes
        name, elsewhere = path_text(self.path.name), path_text(self.elsewhere)
        return (*notes, f"{name} is not checked: {SUMS} beside it lists '{elsewhere}' instead")


def gzip_notes(path: Path) -> tuple[str, ...]:
    """The notes on a file that is not loaded here; a folder has none."""
    return _gzip_notes(path, read(path, 2)) if path.is_file() else ()


def _gzip_notes(path: Path, start: bytes) -> tuple[str, ...]:
    if is_gzip(start) and path.suffix != ".gz":
        return (f"{path_text(path.name)} is gzipped though its name does not say so",)
    return ()


def load(path: Path) -> Loaded:
    """A file whole, hashed, and checked against the SHA256SUMS beside it."""
    data = read(path)
    sha256 = hashlib.sha256(data).hexdigest()
    return Loaded(path, data, sha256, check_sums(path, sha256))


def check_sums(path: Path, sha256: str) -> str | None:
    """Compare a file's hash with the SHA256SUMS beside it.

    Where that lists a file of this name only in another folder, return its path there.
    """
    sums = sums_in(path.parent)
    expected = sums.files.get(path.name)
    if expected is not None and expected != sha256:
        raise DataError(
            f"{path_text(path)} is not the file that {SUMS} beside it lists: "
            f"sha256 is {sha256}, expected {expected}",
            code="E303",
            notes=(f"restore the file; or, if the change is meant, renew its line in {SUMS}",),
        )
    return sums.elsewhere.get(path.name) if expected is None else None


def json_in(path: Path, most: int) -> Any:
    """The value in a JSON file of at most `most` bytes."""
    size = regular_size(path)
    if size > most:
        what = f"{quantity(size, 'byte')}, of which at most {most} are read"
        raise DataError(f"{path_text(path)}: {what}", code="E302")
    try:
        return json.loads(text_of(read(path), path_text(path)))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path_text(path)}: not JSON: {error}", code="E302") from None


def text_of(content: bytes, source: str, cure: str = "") -> str:
    """UTF-8 text; a byte order mark is left out."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + len(content) - len(error.object)  # a mark at the beginning is not in it
        line = content.count(b"\n", 0, at) + 1
        raise DataError(
            f"{source}:{line}: not UTF-8 text: byte {content[at]:#04x} at byte offset {at}{cure}",
            code="E304",
        ) from None


def sums_in(folder: Path) -> Sums:
    """The sums in the SHA256SUMS of a folder; empty where there is none."""
    path = folder / SUMS
    if not path.exists():
        return Sums()
    if regular_size(path) > SUMS_LIMIT:
        raise DataError(
            f"{path_text(path)} has more than {SUMS_LIMIT} bytes; keep the lines of these data "
            "files",
            code="E303",
        )
    return parsed(read(path), folder, path_text(path))


def _both_names(path: Path, config_path: str) -> str:
    plain = f"'{path_text(config_path or path)}'"
    return plain if not config_path or config_path == str(path) else f"{plain} ({path_text(path)})"


def reason_of(error: Exception) -> str:
    """Why a file cannot be read, in the words of the system."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in kinds if test(mode)), "a device")
