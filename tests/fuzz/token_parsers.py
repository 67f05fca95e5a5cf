"""Raw files of tokens, against a few lines of struct that read them."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parsing import Files, Parser, WrongAnswerError
from spoiling import spoil_bytes

from gradcli import engine
from gradcli.data.tokens import TokenSource
from gradcli.errors import DataError

CODES = {"uint8": "B", "uint16": "H", "int32": "i", "uint32": "I"}
SPLIT: dict[str, int | str] = {"train": "100%"}
# Type, bytes of the header, vocabulary, context and stride: what a config says of files.
KEYS = (
    ("uint8", 0, None, 3, 2),
    ("uint8", 1, 200, 2, 2),
    ("uint16", 2, None, 4, 1),
    ("uint16", 0, 300, 3, 3),
    ("int32", 4, 70_000, 3, 3),
    ("uint32", 8, 1 << 20, 2, 5),
)


class Tokens(Parser):
    """One file or two; each window, the hash of each file and what is refused are compared."""

    def right(self) -> Sequence[Files]:
        return [self._files(number, files) for number in range(len(KEYS)) for files in (1, 2)]

    def _files(self, number: int, files: int) -> Files:
        kind, header, vocab, *_ = KEYS[number]
        most = min(vocab or 256, 1 << 15)
        tokens = [(37 * i * i + 11 * i) % most for i in range(17)]
        body = struct.pack(f"<17{CODES[kind]}", *tokens)
        names = ("a.bin", "b.bin")[:files]
        return {"keys": b"%d" % number, **{name: bytes(header) + body for name in names}}

    def spoilt(self, rng: random.Random) -> Files:
        files = self._files(rng.randrange(len(KEYS)), rng.choice((1, 2)))
        for name in list(files)[1:]:
            if rng.random() < 0.8:
                files[name] = spoil_bytes(files[name], rng)
        if rng.random() < 0.3:  # the same bytes under another type
            files["keys"] = b"%d" % rng.randrange(len(KEYS))
        return files

    def read(self, files: Files) -> None:
        number = int(files["keys"])
        shards = {name: content for name, content in files.items() if name != "keys"}
        for name in ("a.bin", "b.bin"):
            (self.folder / name).unlink(missing_ok=True)  # one that is mapped yet stays whole
        for name, content in shards.items():
            (self.folder / name).write_bytes(content)
        expected = windows_of(shards, number)
        try:
            windows = self._windows(number, shards)
        except DataError:
            if expected:
                raise WrongAnswerError("refused, though every token is one") from None
            raise
        if not expected:
            raise WrongAnswerError("accepted, though struct finds no right tokens")
        if windows != expected:
            raise WrongAnswerError("other windows than struct")

    def _windows(self, number: int, shards: Files) -> list[list[int]]:
        kind, header, vocab, context, stride = KEYS[number]
        keys: dict[str, Any] = {"type": kind, "header": header, "vocab": vocab, "split": SPLIT}
        pattern = self.folder / ("?.bin" if len(shards) > 1 else "a.bin")
        source = TokenSource(file=str(pattern), context=context, stride=stride, **keys)
        loaded = source.load()
        hashes = {Path(loaded.files[role]).name: loaded.sha256[role] for role in loaded.sha256}
        if hashes != {name: hashlib.sha256(shards[name]).hexdigest() for name in shards}:
            raise WrongAnswerError("another hash")
        split = loaded.splits["train"]
        if source.facts().sizes != {"train": split.size}:
            raise WrongAnswerError("another number of windows than the facts say")
        inputs, targets = split.batch(engine.arange(split.size, dtype=engine.int64))
        rows = zip(inputs.tolist(), targets.tolist(), strict=True)
        return [[*row, following[-1]] for row, following in rows]


def windows_of(shards: Files, number: int) -> list[list[int]]:
    """All windows with the token behind each; [] where something is no token."""
    kind, header, vocab, context, stride = KEYS[number]
    width, windows = struct.calcsize(f"<{CODES[kind]}"), []
    for name in sorted(shards):
        count, rest = divmod(len(shards[name]) - header, width)
        if count < 1 or rest:
            return []
        tokens = struct.unpack_from(f"<{count}{CODES[kind]}", shards[name], header)
        if min(tokens) < 0 or max(tokens) >= (vocab or 1 << 8 * width):
            return []
        starts = range(0, count - context, stride)
        windows += [list(tokens[start : start + context + 1]) for start in starts]
    return windows
