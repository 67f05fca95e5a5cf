"""Tokens as other programs write them, without a header that says so: `data: {name: tokens}`."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from gradcli import engine
from gradcli.data.dataset import DataSpec, Labelled, LaterInputs, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import expanded, locate, path_text, regular_size
from gradcli.data.hashes import PendingHash, gathered
from gradcli.data.samples import imagined
from gradcli.data.split import cut
from gradcli.data.text import DEFAULT_SPLIT
from gradcli.data.token_windows import WIDTHS, Shard, TokenWindows, pieces_of, stored_as
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data.prepared.identity import FileIdentity

VOCAB_LIMIT = 1 << 20


@dataclass(frozen=True)
class TokenSource:
    """Token numbers in one or several files, mapped in place and cut into windows."""

    PATH_KEYS: ClassVar = ("file", "val_file")

    file: Annotated[str, "file of tokens, or a pattern of several: shards/train-*.bin"]
    type: Annotated[
        Literal["uint8", "uint16", "int32", "uint32"], "of a token, its lowest byte first"
    ] = "uint16"
    header: Annotated[int, "bytes before the first token of each file"] = 0
    vocab: Annotated[
        int | None, "tokens are 0 to vocab - 1; left out: 256 or 65536, all of uint8 or uint16"
    ] = None
    context: Annotated[int, "tokens in one sample"] = 64
    stride: Annotated[
        int | None, "tokens between the starts of training samples; left out: `context`"
    ] = None
    val_file: Annotated[str | None, "file or pattern of the val split"] = None
    split: Annotated[
        dict[str, int | str] | None,
        "counts or percents of tokens for train, val, test; 90%, 10%, or all with `val_file`",
    ] = None

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("stride", self.stride)):
            if value is not None and not 1 <= value <= 1 << 20:
                raise ConfigError(f"{name} must be 1 to {1 << 20}, got {value}", code="E104")
        if not 0 <= self.header <= 1 << 20 or self.header % self._width:
            raise ConfigError(
                f"header must be 0 to {1 << 20}, a multiple of the {quantity(self._width, 'byte')} "
                f"of a token, got {self.header}",
                code="E104",
            )
        most = min(1 << 8 * self._width, VOCAB_LIMIT)
        if self.vocab is None and self._width == 4:
            raise ConfigError(f"vocab is missing: {self.type} does not say it", code="E104")
        if not 1 <= self._kinds <= most:
            raise ConfigError(
                f"vocab must be 1 to {most} for {self.type}, got {self.vocab}", code="E104"
            )
        if self.val_file is not None and self.split is not None:
            raise ConfigError("split and val_file say the same thing; leave one out", code="E104")

    @property
    def _width(self) -> int:
        return WIDTHS[self.type]

    @property
    def _kinds(self) -> int:
        return self.vocab if self.vocab is not None else 1 << 8 * self._width

    def locate(self, root: Path) -> TokenSource:
        """The paths made absolute."""
        val = None if self.val_file is None else _located(self.val_file, root)
        return replace(self, file=_located(self.file, root), val_file=val)

    def _files(self) -> dict[str, list[Path]]:
        """The files by the split that they begin."""
        files = {"train": _matches(self.file)}
        return files if self.val_file is None else {**files, "val": _matches(self.val_file)}

    def _shards(self, paths: Sequence[Path]) -> tuple[Shard, ...]:
        """Where the tokens of each file lie among all: as `_mapped` puts them."""
        sizes = [self._size(path) for path in paths]
        if len(paths) == 1:
            return (Shard(paths[0], 0, (sizes[0] - self.header) // self._width),)
        from gradcli.data.prepared.joined import starts_of

        starts = [(start + self.header) // self._width for start in starts_of(sizes)]
        return tuple(
            Shard(path, start, (size - self.header) // self._width)
            for path, start, size in zip(paths, starts, sizes, strict=False)
        )

    def _size(self, path: Path) -> int:
        size = regular_size(path)
        if size <= self.header:
            raise DataError(
                f"{path_text(path)}: {quantity(size, 'byte')}, of which {self.header} are the "
                "header: it holds no tokens",
                code="E305",
            )
        if (size - self.header) % self._width:
            raise DataError(
                f"{path_text(path)}: {quantity(size - self.header, 'byte')} behind the header, no "
                f"whole number of {self.type}",
                code="E302",
                notes=("set data.type and data.header as the file was written",),
            )
        return size

    def _splits(self, rows: Mapping[str, Tensor]) -> dict[str, TokenWindows]:
        """The splits of these files; `rows` are all tokens by the split that begins there."""
        splits: dict[str, TokenWindows] = {}
        for begins, paths in self._files().items():
            shards = self._shards(paths)
            total = sum(shard.count for shard in shards)
            for name, part in self._parts(begins, total).items():
                step = self.stride if self.stride is not None and name == "train" else self.context
                pieces = pieces_of(shards, part, self.context, step)
                if not pieces:
                    raise DataError(
                        f"{path_text(paths[0])}: the {name} split has "
                        f"{quantity(len(part), 'token')} and no window in one file; a context of "
                        f"{self.context} needs {self.context + 1}",
                        code="E305",
                    )
                splits[name] = TokenWindows(
                    rows[begins], pieces, shards, self.context, step, self._kinds
                )
        return splits

    def _parts(self, begins: str, total: int) -> dict[str, range]:
        if self.val_file is not None:
            return {begins: range(total)}
        return cut(self.split or DEFAULT_SPLIT, total)

    def facts(self) -> DataSpec:
        """From the lengths of the files."""
        with engine.device("meta"):
            splits = self.outline(None)
        return DataSpec(
            input=(self.context,),
            input_kind="index",
            target=(self.context,),
            classes=self._kinds,
            vocab=self._kinds,
            labels=(),
            sizes={name: split.size for name, split in splits.items()},
        )

    def outline(self, facts: DataSpec | None) -> dict[str, TokenWindows]:
        """The splits as `load` makes them, on "meta", where mapped files take no memory."""
        dtype, inner = stored_as(self._width)
        rows = {
            begins: imagined((self._length(paths), *inner), dtype, mapped=True)
            for begins, paths in self._files().items()
        }
        return self._splits(rows)

    def _length(self, paths: Sequence[Path]) -> int:
        """How many tokens the tensor of all has, with what lies between files."""
        if len(paths) == 1:
            return self._shards(paths)[0].count
        from gradcli.data.prepared.joined import starts_of

        return starts_of([self._size(path) for path in paths])[-1] // self._width

    def load(self) -> LoadedData:
        """Map all files; a thread reads them for their hashes and checks their tokens."""
        from gradcli.data.prepared.number_checks import Below
        from gradcli.data.prepared.reading import FileReading, begin

        check = Below(self.header, self._width, self._kinds, "token", little=True)
        question = None if self._kinds == 1 << 8 * self._width else check
        rows, readings, files = {}, dict[str, PendingHash](), dict[str, str]()
        for begins, paths in self._files().items():
            identities = self._identities(paths)
            rows[begins] = self._mapped(identities)
            for number, (path, identity) in enumerate(identities):
                role = begins if len(paths) == 1 else f"{begins}[{number}]"
                readings[role], files[role] = FileReading(path, identity, question), str(path)
        splits = self._splits(rows)
        begin([reading for reading in readings.values() if isinstance(reading, FileReading)])
        return LoadedData(
            source=self,
            facts=DataFacts.of(self.facts()),
            splits=dict(splits),
            sha256=gathered(readings),
            files=files,
        )

    def _identities(self, paths: Sequence[Path]) -> list[tuple[Path, FileIdentity]]:
        from gradcli.data.prepared.identity import FileIdentity

        for path in paths:  # before it is mapped: an empty one cannot be
            self._size(path)
        return [(path, FileIdentity.of(path)) for path in paths]

    def _mapped(self, files: Sequence[tuple[Path, FileIdentity]]) -> Tensor:
        """All tokens of these files, as their shards say."""
        dtype, inner = stored_as(self._width)
        if len(files) == 1:
            from gradcli.data.prepared.mapped import map_file

            path, identity = files[0]
            count = (identity.size - self.header) // self._width
            return map_file(path, dtype, (count, *inner), self.header, identity)
        from gradcli.data.prepared.joined import map_joined

        flat = map_joined(files, dtype)
        return flat.reshape(-1, *inner) if inner else flat

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that are not of such tokens, each with what is expected."""
        if facts.vocab != self._kinds:
            yield "vocab", f"expected {self._kinds}"
        for field, shape in (("input", facts.input), ("target", facts.target)):
            if shape != (self.context,):
                yield field, f"expected [{self.context}], the context"

    def _whole(self, path: Path) -> TokenWindows:
        """All of another file in windows end to end, each token checked."""
        source = replace(self, file=str(path), stride=None, val_file=None, split={"train": "100%"})
        rows = self._mapped(self._identities([path]))
        split = source._splits({"train": rows})["train"]
        split.look_at_all()
        return split

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Windows of another file of such tokens, end to end, as far as they are whole."""
        split = self._whole(path)
        shape = (split.size, self.context)
        inputs = LaterInputs(shape, lambda indices: split.batch(indices)[0])
        starts = range(0, split.size * self.context, self.context)
        return Unseen(inputs, [f"{path.name}:{at}" for at in starts], range(split.size))

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Windows of another file of such tokens, end to end."""
        return Labelled(self._whole(path))


def _located(text: str, root: Path) -> str:
    """A file's path, or a pattern of which files are there, made absolute."""
    if not glob.has_magic(text) or os.path.lexists(root / expanded(text)):
        return str(locate(text, root))
    pattern = os.path.abspath(root / expanded(text))  # noqa: PTH100 -- keeps links
    _matches(pattern, text)
    return pattern


def _matches(pattern: str, text: str = "") -> list[Path]:
    """The files of a pattern, sorted by bytes; or the one file of that name."""
    if not glob.has_magic(pattern) or os.path.lexists(pattern):
        return [Path(pattern)]
    names = sorted(glob.glob(pattern), key=os.fsencode)  # noqa: PTH207 -- it is absolute
    if not names:
        name = (
            f"'{path_text(pattern)}'" if not text else f"'{path_text(text)}' ({path_text(pattern)})"
        )
        raise DataError(f"no data file is called {name}")
    return [Path(path) for path in names]
