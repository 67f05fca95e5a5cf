"""Text files: `data: {name: text}`, windows of tokens that predict the next token."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from gradcli import engine
from gradcli.data.cached import Cached, locate_cache
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Split, Unseen
from gradcli.data.facts import DataFacts, TargetFacts
from gradcli.data.files import load, locate, path_text, read, regular_size, text_of
from gradcli.data.inflate import BOMB_RATIO, is_gzip
from gradcli.data.prepared.cache import SMALL, cache_folder
from gradcli.data.samples import Windows, imagined, tensor_of, windows
from gradcli.data.split import cut
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity, verb

if TYPE_CHECKING:
    from gradcli.data.bpe.source import BpeText

ANY_FILE = "; `unit: bytes` reads any file"
DEFAULT_SPLIT: dict[str, int | str] = {"train": "90%", "val": "10%"}
SMALL_GZIP = (256 << 20) // BOMB_RATIO  # bytes of a packed text that is no long one when unpacked


@dataclass(frozen=True)
class TextSource(Cached):
    """One text, cut into windows; the splits are consecutive stretches of it."""

    PATH_KEYS: ClassVar = ("file", "tokenizer", "cache")

    file: Annotated[str, "text file, gzipped or not; for `unit: bpe` also a pattern of several"]
    unit: Annotated[
        Literal["bytes", "characters", "bpe"],
        "what a token is; characters are read as UTF-8, bpe are tokens of a tokenizer",
    ] = "characters"
    tokenizer: Annotated[
        str | dict[str, Any] | None,
        "of bpe: tokenizer.json, a folder that has it or vocab.json and merges.txt, or {train: N}: "
        "one of N tokens that is trained on the training split",
    ] = None
    key: Annotated[str | None, "of bpe: the key of the text in each line of JSON lines"] = None
    end: Annotated[str | None, "of bpe: the token behind each document, as it is written"] = None
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

        self._check_tokenizer()

    def _check_tokenizer(self) -> None:
        """Keys of bpe stand beside `unit: bpe` alone."""
        if self.unit != "bpe":
            for name in ("tokenizer", "key", "end"):
                if getattr(self, name) is not None:
                    raise ConfigError(
                        f"{name} is for `unit: bpe`, got it for {self.unit}", code="E104"
                    )
            return
        if self.tokenizer is None:
            raise ConfigError(
                "tokenizer is missing: a tokenizer.json, or {train: 4096}", code="E104"
            )
        size = self.tokenizer.get("train") if isinstance(self.tokenizer, dict) else None
        is_size = type(size) is int and 257 <= size <= 1 << 20
        if isinstance(self.tokenizer, dict) and not (is_size and len(self.tokenizer) == 1):
            raise ConfigError(
                f"tokenizer must be a file, or {{train: N}} with N from 257 to {1 << 20}, "
                f"got {self.tokenizer}",
                code="E104",
            )
        if isinstance(self.tokenizer, dict) and self.end is not None:
            raise ConfigError(
                "end is the token of a tokenizer that is there; one that is trained here has "
                "<|endoftext|>",
                code="E104",
            )

    @cached_property
    def bpe(self) -> BpeText:
        """The text as tokens of its tokenizer."""
        from gradcli.data.bpe.source import BpeText  # its library is an extra

        return BpeText(self)

    def beside(self) -> Mapping[str, tuple[str, str]]:
        """The file that a run keeps of a tokenizer."""
        return {"tokenizer": self.bpe.file} if self.unit == "bpe" else {}

    def without_data(self, run: Path) -> TextSource:
        """The same with the tokenizer that lies in a run."""
        if self.unit != "bpe" or not isinstance(self.tokenizer, str):
            return self
        return replace(self, tokenizer=str(run.absolute() / self.tokenizer))

    def step(self, split: str) -> int:
        """What is measured on is cut end to end: overlaps would only count tokens twice."""
        return self.stride if self.stride is not None and split == "train" else self.context

    def locate(self, root: Path) -> TextSource:
        """The paths made absolute."""
        if self.unit != "bpe":
            file, tokenizer = str(locate(self.file, root)), self.tokenizer
        else:
            from gradcli.data.bpe.source import located  # its library is an extra

            file, tokenizer = located(self.file, self.tokenizer, root)
        return replace(self, file=file, tokenizer=tokenizer, cache=locate_cache(self.cache, root))

    def facts(self) -> DataSpec:
        """From the whole text."""
        return self._text_facts if self.unit != "bpe" else self.bpe.facts()

    def outline(self, facts: DataSpec) -> Mapping[str, Split]:
        """The splits as `load` makes them, on "meta".

        Of a text that was not read yet, tokens behind the last window are left out.
        """
        if self.unit == "bpe":
            return self.bpe.outline(facts)
        text = vars(self).get("_text")
        dtype = engine.uint8 if self.unit == "bytes" else engine.int32
        with engine.device("meta"):
            if isinstance(text, TextTokens):
                mapped = text.counts is not None
                return self._windows(imagined(text.tokens.shape, text.tokens.dtype, mapped=mapped))
            splits = {}
            for name, size in facts.sizes.items():
                step = self.step(name)
                tokens = engine.empty((size - 1) * step + self.context + 1, dtype=dtype)
                splits[name] = Windows(tokens, self.context, step)
        return splits

    def _windows(self, tokens: Tensor) -> dict[str, Windows]:
        """The splits of a whole text, sharing its memory."""
        return {
            name: Windows(tokens[part.start : part.stop], self.context, self.step(name))
            for name, part in self._parts(tokens.shape[0]).items()
        }

    def _parts(self, length: int) -> dict[str, range]:
        """The ranges of the splits of `length` tokens."""
        return cut(self.split or DEFAULT_SPLIT, length)

    def load(self) -> LoadedData:
        """All tokens, in memory or mapped."""
        if self.unit == "bpe":
            return self.bpe.load()
        text, targets = self._text, None
        if text.counts is not None:
            counts = text.counts(self._parts(text.tokens.shape[0])["train"])
            rest = (self._text_facts.vocab or len(counts)) - len(counts)
            targets = TargetFacts(counts=(*counts, *[0] * rest))
        return LoadedData(
            source=self,
            facts=DataFacts.of(self._text_facts, unit=self.unit, targets=targets),
            splits=dict(self._windows(text.tokens)),
            sha256={"train": text.sha256},
            files={"train": self.file},
            notes=text.notes,
        )

    @cached_property
    def _text(self) -> TextTokens:
        """Read once, by whoever asks first."""
        assert self.unit != "bpe", "its tokens are in `bpe`"
        return text_of_file(Path(self.file), self.unit, None, self.cache)

    @cached_property
    def _text_facts(self) -> DataSpec:
        tokens, source = self._text.tokens, path_text(self.file)
        if not tokens.shape[0]:
            raise DataError(f"{source}: the text is empty", code="E305")
        vocab = len(self._text.labels) or self.vocab or 256
        return DataSpec(
            input=(self.context,),
            input_kind="index",
            target=(self.context,),
            classes=vocab,
            vocab=vocab,
            labels=self._text.labels,
            sizes=self._sizes(self._parts(tokens.shape[0]), source),
        )

    def _sizes(self, parts: Mapping[str, range], source: str) -> dict[str, int]:
        sizes = {n: windows(len(p), self.context, self.step(n)) for n, p in parts.items()}
        short = next((name for name, size in sizes.items() if size == 0), None)
        if short is not None:
            raise too_few(len(parts[short]), self.context, source, short)
        return sizes

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that do not fit this text, each with what is expected."""
        if facts.unit != self.unit:
            yield "unit", f"expected '{self.unit}'"
        for field, shape in (("input", facts.input), ("target", facts.target)):
            if shape != (self.context,):
                yield field, f"expected [{self.context}], the context"
        if self.unit == "bpe" and facts.unit == "bpe":
            yield from self.bpe.misfits(facts)

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Windows of another text, end to end; the last one ends where the text ends."""
        if self.unit == "bpe":
            return self.bpe.new_inputs(path, facts)
        inputs, starts = windows_of(_tokens(path, facts), facts, path_text(path))
        return Unseen(inputs, [f"{path.name}:{at}" for at in starts], range(len(starts)))

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Windows of another text, end to end, as far as they are whole."""
        if self.unit == "bpe":
            return self.bpe.new_split(path, facts)
        tokens = text_of_file(path, self.unit, facts.labels, self.cache).tokens
        (width,) = facts.input
        if tokens.shape[0] <= width:
            raise too_few(tokens.shape[0], width, path_text(path))
        return Labelled(Windows(tokens, width, width))


@dataclass(frozen=True)
class TextTokens:
    """A text as tokens.

    Attributes:
        labels: the characters that a token stands for; () of bytes.
        counts: how often each occurs in a stretch, where that is known without reading it.
    """

    tokens: Tensor
    labels: tuple[str, ...]
    sha256: str
    notes: tuple[str, ...]
    counts: Callable[[range], list[int]] | None = None


def text_of_file(
    path: Path,
    unit: Literal["bytes", "characters"],
    labels: Sequence[str] | None = None,
    cache: str | None = None,
) -> TextTokens:
    """A text whose characters are those that are known, or all that are in it."""
    if not _is_small(path):
        from gradcli.data.long_text import long_text

        only = labels if unit == "characters" else None
        long = long_text(path, unit, cache_folder(cache), only, ANY_FILE)
        return TextTokens(long.tokens, long.labels, long.sha256, long.notes, long.counts)
    loaded = load(path)
    content = loaded.unpacked()
    tokens: bytes | array[int] = content
    characters: tuple[str, ...] = ()
    if unit == "characters":
        text = text_of(content, path_text(path), ANY_FILE)
        characters = tuple(labels or sorted(set(text), key=lambda c: c.encode()))
        tokens = encode(text, characters, path_text(path))
    flat = tensor_of(tokens, (len(tokens),))
    return TextTokens(flat, characters, loaded.sha256, loaded.notes())


def _is_small(path: Path) -> bool:
    """Whether a text is read whole into memory at each start."""
    size = regular_size(path)
    return size <= SMALL_GZIP or (size <= SMALL and not is_gzip(read(path, 2)))


def windows_of(tokens: Sequence[int], facts: DataFacts, source: str) -> tuple[Tensor, list[int]]:
    """A text cut into samples, and where each begins; the last one ends where the text ends."""
    (width,) = facts.input
    if len(tokens) < width:
        number = f"{quantity(len(tokens), 'token')} {verb(len(tokens))} too few"
        what = f"{number}: the model reads {width}"
        raise DataError(f"{source}: {what}", code="E305")
    starts = [*range(0, len(tokens) - width, width), len(tokens) - width]
    flat = array("q", (token for at in starts for token in tokens[at : at + width]))
    return tensor_of(flat, (len(starts), width)), starts


def too_few(tokens: int, context: int, source: str, split: str = "") -> DataError:
    """The error over a text, or a split of it, that is shorter than a window."""
    if split:
        what = (
            f"the {split} split has {quantity(tokens, 'token')}; a context of {context} needs at "
            f"least {context + 1}"
        )
    else:
        number = f"{quantity(tokens, 'token')} {verb(tokens)} too few"
        what = f"{number}: a context of {context} needs {context + 1}"
    return DataError(f"{source}: {what}", code="E305")


def _tokens(path: Path, facts: DataFacts) -> bytes | array[int]:
    """The tokens of another text."""
    content, source = load(path).unpacked(), path_text(path)
    if facts.unit == "bytes":
        return content
    return encode(text_of(content, source, ANY_FILE), facts.labels, source)


def encode(text: str, labels: Sequence[str], source: str) -> array[int]:
    """The place of each character in `labels`."""
    foreign = set(text).difference(labels)
    if foreign:
        raise foreign_character(text, foreign, source)
    # The places as code points, four bytes each: ten times as fast as a look-up a character.
    codes = text.translate({ord(label): i for i, label in enumerate(labels)})
    return array("i", codes.encode(f"utf-32-{sys.byteorder[0]}e", "surrogatepass"))


def foreign_character(text: str, foreign: Collection[str], source: str, line: int = 1) -> DataError:
    """The first of a text's characters that no label stands for; the text begins in `line`."""
    at = next(i for i, c in enumerate(text) if c in foreign)
    line += text.count("\n", 0, at)
    return DataError(
        f"{source}:{line}: the character {text[at]!r} did not occur in the training text",
        code="E304",
    )
