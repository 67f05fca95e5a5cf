"""Text files: `data: {name: text}`, windows of tokens that predict the next token."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from gradcli import engine
from gradcli.data.dataset import Facts, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import Loaded, load, locate, shown, text_of
from gradcli.data.samples import Windows, tensor_of, windows
from gradcli.data.split import cut
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity, verb

ANY_FILE = "; `unit: bytes` reads any file"
DEFAULT_SPLIT: dict[str, int | str] = {"train": "90%", "val": "10%"}
# Tokens of each text that was read, by what can change them.
_lengths: dict[tuple[str, str, int, int], int] = {}


@dataclass(frozen=True)
class TextSource:
    """One text, cut into windows; the splits are stretches of it, in order."""

    PLACES: ClassVar = ("file",)

    file: Annotated[str, "text file, gzipped or not"]
    unit: Annotated[
        Literal["bytes", "characters"], "what a token is; characters are read as UTF-8"
    ] = "characters"
    context: Annotated[int, "tokens in one sample"] = 64
    stride: Annotated[
        int | None, "tokens between the starts of training samples; left out: `context`"
    ] = None
    vocab: Annotated[int | None, "tokens that a model of bytes knows, if more than 256"] = None
    split: Annotated[
        dict[str, int | str] | None, "counts or percents of tokens for train, val, test; 90%, 10%"
    ] = None

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("stride", self.stride)):
            if value is not None and not 1 <= value <= 1 << 20:
                raise ConfigError(f"{name} must be 1 to {1 << 20}, got {value}", code="E104")
        if self.vocab is not None and (self.unit != "bytes" or not 256 <= self.vocab <= 1 << 20):
            raise ConfigError(
                f"vocab is for `unit: bytes`, from 256 to {1 << 20}, "
                f"got {self.vocab} for {self.unit}",
                code="E104",
            )

    def _step(self, split: str) -> int:
        """What is measured on is cut end to end: overlaps would only count tokens twice."""
        return self.stride if self.stride is not None and split == "train" else self.context

    def locate(self, root: Path) -> TextSource:
        """The path made absolute."""
        return replace(self, file=str(locate(self.file, root)))

    def facts(self) -> Facts:
        """From the whole text."""
        return self._prepared().facts

    def outline(self, facts: Facts) -> dict[str, Windows]:
        """The splits as `load` makes them, on "meta".

        Of a text that was not read yet, tokens behind the last window are left out.
        """
        dtype = engine.uint8 if self.unit == "bytes" else engine.int32
        length = _lengths.get(self._version())
        with engine.device("meta"):
            if length is not None:
                return self._windows(engine.empty(length, dtype=dtype))
            splits = {}
            for name, size in facts.sizes.items():
                step = self._step(name)
                tokens = engine.empty((size - 1) * step + self.context + 1, dtype=dtype)
                splits[name] = Windows(tokens, self.context, step)
        return splits

    def _windows(self, tokens: Tensor) -> dict[str, Windows]:
        """The splits of a whole text, sharing its memory."""
        return {
            name: Windows(tokens[part.start : part.stop], self.context, self._step(name))
            for name, part in self._parts(tokens.shape[0]).items()
        }

    def _parts(self, length: int) -> dict[str, range]:
        """Where the splits of so many tokens lie."""
        return cut(self.split or DEFAULT_SPLIT, length)

    def load(self) -> LoadedData:
        """All tokens in memory."""
        text = self._prepared()
        return LoadedData(
            source=self,
            facts=DataFacts.of(text.facts, unit=self.unit),
            splits=dict(self._windows(tensor_of(text.tokens, (len(text.tokens),)))),
            sha256={"train": text.loaded.sha256},
            files={"train": self.file},
            notes=text.loaded.notes(),
        )

    def _version(self) -> tuple[str, str, int, int]:
        """Where the text lies, what a token of it is, and the size and time of the file."""
        try:
            status = Path(self.file).stat()
        except OSError:
            return self.file, self.unit, -1, -1
        return self.file, self.unit, status.st_size, status.st_mtime_ns

    def _prepared(self) -> _Prepared:
        version = self._version()  # before the text: a file that changes meanwhile is not known
        loaded = load(Path(self.file))
        source = shown(self.file)
        content = loaded.unpacked()
        labels: list[str] = []
        if self.unit == "characters":
            text = text_of(content, source, ANY_FILE)
            labels = sorted(set(text), key=lambda c: c.encode())
            tokens: bytes | array[int] = encode(text, labels, source)
        else:
            tokens = content
        if not tokens:
            raise DataError(f"{source}: the text is empty", code="E305")
        _lengths[version] = len(tokens)
        vocab = len(labels) or self.vocab or 256
        facts = Facts(
            input=(self.context,),
            input_kind="index",
            target=(self.context,),
            classes=vocab,
            vocab=vocab,
            labels=tuple(labels),
            sizes=self._sizes(self._parts(len(tokens)), source),
        )
        return _Prepared(loaded, tokens, facts)

    def _sizes(self, parts: Mapping[str, range], source: str) -> dict[str, int]:
        sizes = {n: windows(len(p), self.context, self._step(n)) for n, p in parts.items()}
        short = next((name for name, size in sizes.items() if size == 0), None)
        if short is not None:
            raise DataError(
                f"{source}: the {short} split has {quantity(len(parts[short]), 'token')}; a "
                f"context of {self.context} needs at least {self.context + 1}",
                code="E305",
            )
        return sizes

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that are not of such a text, each with what is expected."""
        if facts.unit != self.unit:
            yield "unit", f"expected '{self.unit}'"
        for field, shape in (("input", facts.input), ("target", facts.target)):
            if shape != (self.context,):
                yield field, f"expected [{self.context}], the context"

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Windows of another text, end to end; the last one ends where the text ends."""
        inputs, starts = windows_of(_tokens(path, facts), facts, shown(path))
        return Unseen(inputs, [f"{path.name}:{at}" for at in starts], range(len(starts)))

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Windows of another text, end to end, as far as they are whole."""
        tokens, (width,) = _tokens(path, facts), facts.input
        if len(tokens) <= width:
            what = f"{_too_few(tokens)}: a context of {width} needs {width + 1}"
            raise DataError(f"{shown(path)}: {what}", code="E305")
        return Labelled(Windows(tensor_of(tokens, (len(tokens),)), width, width))


def windows_of(
    tokens: bytes | array[int], facts: DataFacts, source: str
) -> tuple[Tensor, list[int]]:
    """A text cut into samples, and where each begins; the last one ends where the text ends."""
    (width,) = facts.input
    if len(tokens) < width:
        what = f"{_too_few(tokens)}: the model reads {width}"
        raise DataError(f"{source}: {what}", code="E305")
    starts = [*range(0, len(tokens) - width, width), len(tokens) - width]
    flat = array("q", (token for at in starts for token in tokens[at : at + width]))
    return tensor_of(flat, (len(starts), width)), starts


def _too_few(tokens: Sequence[int]) -> str:
    return f"{quantity(len(tokens), 'token')} {verb(len(tokens))} too few"


def _tokens(path: Path, facts: DataFacts) -> bytes | array[int]:
    """The tokens of another text."""
    content, source = load(path).unpacked(), shown(path)
    if facts.unit == "bytes":
        return content
    return encode(text_of(content, source, ANY_FILE), facts.labels, source)


@dataclass(frozen=True)
class _Prepared:
    """A text as tokens."""

    loaded: Loaded
    tokens: bytes | array[int]
    facts: Facts


def encode(text: str, labels: Sequence[str], source: str) -> array[int]:
    """The place of each character in `labels`."""
    foreign = set(text).difference(labels)
    if foreign:
        at = next(i for i, c in enumerate(text) if c in foreign)
        line = text.count("\n", 0, at) + 1
        raise DataError(
            f"{source}:{line}: the character {text[at]!r} did not occur in the training text",
            code="E304",
        )
    # The places as code points, four bytes each: ten times as fast as a look-up a character.
    places = text.translate({ord(label): i for i, label in enumerate(labels)})
    return array("i", places.encode(f"utf-32-{sys.byteorder[0]}e", "surrogatepass"))
