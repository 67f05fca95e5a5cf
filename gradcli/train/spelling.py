"""Decode tokens to text: the bytes of each token, and the characters of many, piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

from gradcli.data.dataset import Source
from gradcli.data.facts import DataFacts, DataSpec

if TYPE_CHECKING:
    from gradcli.data.bpe.tokenizer import Tokenizer
    from gradcli.data.text import TextSource

_NO_BYTE = b"\xff"  # part of no character


class Decoder(Protocol):
    """Decodes tokens that come one by one."""

    def add(self, token: int) -> str:
        """The text that this token completes; often none."""

    def end(self) -> str:
        """The rest of the text, after the last token."""


class BytesDecoder:
    """Decodes tokens that stand for bytes; bytes that form no character become U+FFFD."""

    def __init__(self, spelled: Sequence[bytes]) -> None:
        self._spelled = spelled
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The characters that end with this token's bytes."""
        return self._decoder.decode(self._spelled[token])

    def end(self) -> str:
        """U+FFFD for remaining bytes that form no character."""
        return self._decoder.decode(b"", final=True)


class _TokenizerDecoder:
    """Decodes tokens of a tokenizer; several may form one character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.stream()
        self._open: list[int] = []  # tokens of a character that is not complete

    def add(self, token: int) -> str:
        text = self._stream(token)
        self._open = [] if text else [*self._open, token]
        return text

    def end(self) -> str:
        rest, self._open = self._open, []
        return self._tokenizer.decode(rest) if rest else ""


def decoder_of(facts: DataFacts, source: Source | None) -> Decoder:
    """The decoder for tokens of this data."""
    if is_bpe(source):
        return _TokenizerDecoder(source.bpe.tokenizer)
    return BytesDecoder(token_bytes(facts, facts.unit))


def token_lengths(facts: DataSpec, source: Source | None) -> tuple[int, ...]:
    """The length of each token as text in UTF-8; () of data that is no text."""
    if is_bpe(source):
        return source.bpe.tokenizer.lengths
    return tuple(map(len, token_bytes(facts, unit_of(facts, source))))


def unit_of(facts: DataSpec, source: Source | None) -> str | None:
    """The unit of a text's tokens; None for other data."""
    unit: str | None = getattr(facts, "unit", None) or getattr(source, "unit", None)
    return unit


def is_bpe(source: Source | None) -> TypeGuard[TextSource]:
    """Whether the data is a text of a tokenizer's tokens."""
    return getattr(source, "unit", None) == "bpe"


def token_bytes(facts: DataSpec, unit: str | None) -> list[bytes]:
    """The UTF-8 bytes of each token of the vocabulary, by its number.

    Empty if the data is no text.
    """
    if unit is None:
        return []
    if unit == "bytes":
        return [bytes([i]) if i < 256 else _NO_BYTE for i in range(facts.vocab or 0)]
    return [label.encode("utf-8", "surrogatepass") for label in facts.labels]


class Speller:
    """Decodes tokens one by one, up to the first of `stops` or `stop_tokens`, which it leaves out.

    It holds back text that may be the beginning of a stop text.

    Attributes:
        at_end: whether a stop text or token has come.
        tokens: how many tokens came until then.
    """

    def __init__(
        self, decoder: Decoder, stops: Sequence[str] = (), stop_tokens: Collection[int] = ()
    ) -> None:
        self._decoder = decoder
        self._stops = stops
        self._stop_tokens = stop_tokens
        self._buffer = ""
        self.at_end = False
        self.tokens = 0

    def add(self, token: int) -> str:
        """The text to show after this token."""
        if self.at_end:
            return ""
        self.tokens += 1
        if token in self._stop_tokens:
            piece, self.at_end = self.end(), True
            return piece
        return self._emit(self._decoder.add(token))

    def end(self) -> str:
        """The text to show after the last token."""
        if self.at_end:
            return ""
        piece = self._emit(self._decoder.end())
        return piece if self.at_end else piece + self._buffer

    def _emit(self, text: str) -> str:
        self._buffer += text
        positions = [position for stop in self._stops if (position := self._buffer.find(stop)) >= 0]
        self.at_end = bool(positions)
        safe = min(positions) if positions else len(self._buffer) - self._undecided()
        piece, self._buffer = self._buffer[:safe], self._buffer[safe:]
        return piece

    def _undecided(self) -> int:
        """How many characters at the end may begin a stop text."""
        longest = min(len(self._buffer), max(map(len, self._stops), default=1) - 1)
        ends = (self._buffer[-count:] for count in range(longest, 0, -1))
        return next((len(end) for end in ends if any(s.startswith(end) for s in self._stops)), 0)
