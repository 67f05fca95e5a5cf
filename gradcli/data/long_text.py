"""Texts of any length as tokens: read in blocks, prepared once, or mapped where they lie."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from gradcli import engine
from gradcli.data.files import Loaded, check_sums, path_text, read, regular_size
from gradcli.data.inflate import is_gzip
from gradcli.data.prepared.identity import identity_of_hash, sha256_of
from gradcli.data.prepared.mapped import map_file
from gradcli.data.prepared.progress import Progress
from gradcli.data.prepared.sets import Recipe, prepared
from gradcli.data.prepared.writer import Writer
from gradcli.data.samples import tensor_of
from gradcli.data.tabular.pieces import pieces_of, texts
from gradcli.data.text import foreign_character
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError

Unit = Literal["bytes", "characters"]
READER, VERSION = "text", 1  # of prepared data
_BYTES = 256  # different ones
_PORTION = 1 << 20  # tokens that are counted at once
_BLOCK_TOKENS = 4 << 20  # tokens of one block of counts


@dataclass(frozen=True)
class LongText:
    """A text as tokens that are mapped.

    Attributes:
        tokens: (N,) uint8, or int32 where there are more than 256 labels.
        labels: the characters, sorted by bytes; () of bytes.
        sha256: of the file.
        notes: lines worth telling the user.
    """

    tokens: Tensor
    labels: tuple[str, ...]
    sha256: str
    notes: tuple[str, ...]
    _counts: Tensor  # of each label, by blocks
    _ends: Sequence[int]  # of those, in tokens

    def counts(self, stretch: range) -> list[int]:
        """How often each label occurs in a stretch of tokens."""
        counts: list[int] = (self._before(stretch.stop) - self._before(stretch.start)).tolist()
        return counts

    def _before(self, end: int) -> Tensor:
        """The counts of the tokens before one."""
        whole = bisect_right(self._ends, end)
        total = self._counts[:whole].to(engine.int64).sum(dim=0)
        for begin in range(self._ends[whole - 1] if whole else 0, end, _PORTION):
            total = total + _count(self.tokens[begin : min(begin + _PORTION, end)], len(total))
        return total


def long_text(
    path: Path, unit: Unit, cache: Path, labels: Sequence[str] | None = None, cure: str = ""
) -> LongText:
    """The text in a file of any length; with `labels`, of no other characters than these.

    Raises:
        DataError: it is no UTF-8, holds other characters, or is a bomb; `cure` ends the first.
    """
    with Progress(f"hashing {path_text(path.name)}", regular_size(path), "B") as progress:
        sha256 = sha256_of(path, progress.advance, cache)
    keys: dict[str, Any] = {"unit": unit, "labels": None if labels is None else list(labels)}
    recipe = Recipe(READER, VERSION, keys, {"text": (path, sha256)})
    packed = is_gzip(read(path, 2))
    prepared_text = prepared(recipe, _Writing(path, unit, labels, cure, packed).write, cache)
    if unit == "bytes" and not packed:
        identity = identity_of_hash(path)
        tokens = map_file(path, engine.uint8, (identity.size,), 0, identity)
    else:
        tokens = prepared_text.tensor("tokens")
    counts, ends = prepared_text.tensor("counts"), prepared_text.tensor("ends").tolist()
    notes = Loaded(path, read(path, 2), sha256, check_sums(path, sha256)).notes()
    return LongText(tokens, tuple(prepared_text.facts["labels"]), sha256, notes, counts, ends)


def _count(tokens: Tensor, kinds: int) -> Tensor:
    return engine.bincount(tokens.to(engine.int64), minlength=kinds)


class _Writing:
    """One text on its way into prepared data."""

    def __init__(
        self, path: Path, unit: Unit, labels: Sequence[str] | None, cure: str, packed: bool
    ) -> None:
        self._path, self._source, self._packed = path, path_text(path), packed
        self._unit, self._labels, self._cure = unit, labels, cure
        self._advance: Callable[[int], object] = lambda _: None

    def write(self, writer: Writer) -> dict[str, Any]:
        """Tokens, how often each label occurs in them by blocks, and the labels."""
        size = regular_size(self._path)
        passes = 2 if self._unit == "characters" and self._labels is None else 1
        self._advance = writer.progress(None if self._packed else passes * size, "B").advance
        if self._unit == "bytes":
            blocks = (tensor_of(piece, (len(piece),)) for piece in self._pieces())
            self._write_tokens(writer, blocks, engine.uint8, _BYTES)
            return {"labels": []}
        labels = self._characters() if self._labels is None else self._labels
        dtype = engine.uint8 if len(labels) <= _BYTES else engine.int32
        self._write_tokens(writer, self._encoded(labels, dtype), dtype, len(labels))
        return {"labels": list(labels)}

    def _write_tokens(
        self, writer: Writer, blocks: Iterator[Tensor], dtype: engine.DType, kinds: int
    ) -> None:
        in_place = self._unit == "bytes" and not self._packed
        tokens = None if in_place else writer.array("tokens", dtype)
        counts, ends = writer.array("counts", engine.int32, (kinds,)), array("q")
        total, uncounted = 0, engine.zeros(kinds, dtype=engine.int64)
        for block in blocks:
            if tokens is not None:
                tokens.append(block.memoryview())
            total += block.shape[0]
            uncounted = uncounted + _count(block, kinds)
            if total - (ends[-1] if ends else 0) >= _BLOCK_TOKENS:
                counts.append(uncounted.to(engine.int32).memoryview())
                ends.append(total)
                uncounted = engine.zeros(kinds, dtype=engine.int64)
        writer.array("ends", engine.int64).append(ends)

    def _pieces(self) -> Iterator[bytes]:
        for piece in pieces_of(self._path):
            self._advance(len(piece))
            if piece:
                yield piece

    def _texts(self) -> Iterator[str]:
        try:
            yield from (text for text in texts(self._pieces(), self._source) if text)
        except DataError as error:
            cure = self._cure if error.code == "E304" else ""
            raise DataError(f"{error.message}{cure}", code=error.code) from None

    def _characters(self) -> list[str]:
        """Those that occur, sorted by their numbers, which is the order of their bytes."""
        numbers: set[int] = set()
        for text in self._texts():
            counts = engine.bincount(_numbers(text)).tolist()
            numbers.update(number for number, count in enumerate(counts) if count)
        return [chr(number) for number in sorted(numbers)]

    def _encoded(self, labels: Sequence[str], dtype: engine.DType) -> Iterator[Tensor]:
        """The blocks of the text as places in `labels`."""
        top = max(map(ord, labels), default=0) + 1
        indices = array("i", [-1]) * (top + 1)  # the last one stands for all above
        for index, label in enumerate(labels):
            indices[ord(label)] = index
        table, line = tensor_of(indices, (len(indices),)), 1
        for text in self._texts():
            codes = engine.index_select(table, 0, _numbers(text).clamp(max=top))
            if self._labels is not None and int(codes.amin().item()) < 0:
                raise foreign_character(text, set(text).difference(labels), self._source, line)
            yield codes.to(dtype)
            line += text.count("\n")


def _numbers(text: str) -> Tensor:
    """The number of each character."""
    codes = text.encode(f"utf-32-{sys.byteorder[0]}e")
    return engine.frombuffer(codes, dtype=engine.int32).to(engine.int64)
