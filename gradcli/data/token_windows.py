"""Windows of tokens that lie in files, one shard behind the other, and are mapped there."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from gradcli import engine
from gradcli.data.files import path_text
from gradcli.data.samples import tensor_of, windows
from gradcli.data.staging import gathered
from gradcli.dataclass import dataclass
from gradcli.engine import DType, Tensor
from gradcli.errors import DataError

WIDTHS = {"uint8": 1, "uint16": 2, "int32": 4, "uint32": 4}  # bytes of a token
BLOCK = 1 << 16  # tokens that are counted together
COUNT_LIMIT = 1 << 24  # tokens; of more, count so many in evenly spaced blocks


def stored_as(width: int) -> tuple[DType, tuple[int, ...]]:
    """The type of tensors that hold such tokens, and what each is there: itself or its bytes.

    The engine has no uint16. Files are little-endian, whatever the machine.
    """
    if width == 4 and sys.byteorder == "little":
        return engine.int32, ()
    return engine.uint8, () if width == 1 else (width,)


def whole(rows: Tensor) -> Tensor:
    """Tokens as int64, of those that are stored as bytes, the lowest first."""
    if rows.ndim == 1:
        return rows.to(engine.int64)
    columns = [rows[:, column].to(engine.int64) for column in range(rows.shape[1])]
    return sum((c * 256**k for k, c in enumerate(columns[1:], 1)), columns[0])


@dataclass(frozen=True)
class Shard:
    """A file among others.

    Attributes:
        start: the index of its first token in the tensor of all.
        count: its tokens.
    """

    path: Path
    start: int
    count: int


@dataclass(frozen=True)
class ShardSpan:
    """A stretch of a shard that belongs to a split; `window` is the number of its first window."""

    window: int
    start: int
    stop: int


def pieces_of(
    shards: Sequence[Shard], part: range, context: int, stride: int
) -> tuple[ShardSpan, ...]:
    """The stretches of a part of all tokens that hold a window at least: none crosses shards."""
    pieces, before, number = [], 0, 0
    for shard in shards:
        low = min(max(part.start - before, 0), shard.count)
        high = min(max(part.stop - before, 0), shard.count)
        count = windows(high - low, context, stride)
        if count:
            pieces.append(ShardSpan(number, shard.start + low, shard.start + high))
        number += count
        before += shard.count
    return tuple(pieces)


@dataclass(frozen=True)
class TokenWindows:
    """A split: sample i is the tokens of window i, its target the same, one later.

    Attributes:
        rows: all tokens of all shards, as `stored_as` says.
        vocab: tokens are 0..vocab-1.
        device: where batches go; None: where the tokens are.
    """

    rows: Tensor
    pieces: tuple[ShardSpan, ...]
    shards: tuple[Shard, ...]
    context: int
    stride: int
    vocab: int
    device: str | None = None

    @property
    def size(self) -> int:
        """The number of windows that have all their next tokens."""
        last = self.pieces[-1]
        return last.window + windows(last.stop - last.start, self.context, self.stride)

    def to(self, device: str) -> TokenWindows:
        """The same tokens in the memory of a device."""
        return replace(self, rows=self.rows.to(device), device=None)

    def staged(self, device: str) -> TokenWindows:
        """The same tokens where they are, whose batches go to a device."""
        return replace(self, device=device)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets, both int64 (B, context)."""
        both = whole(gathered(self.rows, self._positions(indices).reshape(-1), self.device))
        both = both.reshape(-1, self.context + 1)
        return both[:, :-1].contiguous(), both[:, 1:].contiguous()

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""
        # In plain numbers: a thread asks beside the steps, whose memory is planned to the byte.
        windows = [piece.window for piece in self.pieces]
        origins = [piece.start - piece.window * self.stride for piece in self.pieces]
        numbers: list[int] = indices.reshape(-1).tolist()
        shards = (bisect_right(windows, number) - 1 for number in numbers)
        starts = [n * self.stride + origins[at] for n, at in zip(numbers, shards, strict=True)]
        yield self.rows, starts, self.context + 1

    def _positions(self, indices: Tensor) -> Tensor:
        """Where the tokens of these windows lie, (B, context + 1)."""
        steps = tensor_of(array("q", range(self.context + 1)), (1, self.context + 1))
        return self._starts(indices.reshape(-1, 1)) + steps

    def _starts(self, indices: Tensor) -> Tensor:
        """The first token of each window, (B, 1): it jumps ahead at each cut."""
        origins = [piece.start - piece.window * self.stride for piece in self.pieces]
        starts = indices * self.stride + origins[0]
        if len(origins) == 1:
            return starts
        jumps = array("q", (b - a for a, b in pairwise(origins)))
        firsts = array("q", (piece.window for piece in self.pieces[1:]))
        passed = indices.ge(tensor_of(firsts, (1, len(firsts)))).to(engine.int64)
        return starts + (passed * tensor_of(jumps, (1, len(jumps)))).sum(dim=1, keepdim=True)

    def target_portions(self) -> Iterator[Tensor]:
        """Tokens to be counted: all, or blocks of them evenly spaced; a foreign one is refused."""
        ends = list(accumulate(piece.stop - piece.start for piece in self.pieces))
        if ends[-1] <= COUNT_LIMIT:
            for start, stop in self._blocks():
                yield self._read_checked(start, stop)
            return
        for begin in _begins(ends[-1]):
            number = bisect_right(ends, begin)
            piece = self.pieces[number]
            start = piece.stop - (ends[number] - begin)
            yield self._read_checked(start, min(start + BLOCK, piece.stop))

    def look(self, indices: Tensor) -> None:
        """Raise if a window holds what is no token, with its file and place."""
        for first, *_ in self._positions(indices).tolist():
            self._read_checked(first, first + self.context + 1)

    def look_at_all(self) -> None:
        """The same of all tokens."""
        for start, stop in self._blocks():
            self._read_checked(start, stop)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        for piece in self.pieces:
            for start in range(piece.start, piece.stop, BLOCK):
                yield start, min(start + BLOCK, piece.stop)

    def _read_checked(self, start: int, stop: int) -> Tensor:
        tokens = whole(self.rows[start:stop])
        if tokens.device != "meta" and (
            tokens.amin().item() < 0 or tokens.amax().item() >= self.vocab
        ):
            values: list[int] = tokens.tolist()
            at = next(i for i, value in enumerate(values) if not 0 <= value < self.vocab)
            raise self._foreign(start + at, values[at])
        return tokens

    def _foreign(self, index: int, value: int) -> DataError:
        number = bisect_right([shard.start for shard in self.shards], index) - 1
        shard = self.shards[number]
        return DataError(
            f"{path_text(shard.path)}: token {index - shard.start} is {value % (1 << 32)}, "
            f"expected 0 to {self.vocab - 1}",
            code="E305",
            notes=("set data.vocab, data.type and data.header as the file was written",),
        )


def _begins(total: int) -> Iterator[int]:
    """Where the blocks begin that are counted of many tokens: a function of their number alone."""
    blocks = COUNT_LIMIT // BLOCK
    yield from (number * (total - BLOCK) // (blocks - 1) for number in range(blocks))
