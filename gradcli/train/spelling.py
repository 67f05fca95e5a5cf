"""What tokens of a text spell: the bytes of each, and the characters of many, piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

from gradcli.data.dataset import Source
from gradcli.data.facts import DataFacts, Facts

if TYPE_CHECKING:
    from gradcli.data.bpe.tokenizer import Tokenizer
    from gradcli.data.text import TextSource

_NO_BYTE = b"\xff"  # part of no character


class Decoder(Protocol):
    """What gives the text of tokens that come one by one."""

    def add(self, token: int) -> str:
        """The text that is complete once this token is there; often none."""

    def end(self) -> str:
        """What is left where no token comes any more."""


class BytesDecoder:
    """Tokens that stand for bytes; what is or makes up no character is U+FFFD."""

    def __init__(self, spelled: Sequence[bytes]) -> None:
        self._spelled = spelled
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The characters whose last byte this is."""
        return self._decoder.decode(self._spelled[token])

    def end(self) -> str:
        """U+FFFD for bytes that make up none."""
        return self._decoder.decode(b"", final=True)


class _TokenizerDecoder:
    """Tokens of a tokenizer, of which some make up a character together."""

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
    """The way from the tokens of a text back to it."""
    if is_bpe(source):
        return _TokenizerDecoder(source.bpe.tokenizer)
    return BytesDecoder(token_bytes(facts, facts.unit))


def token_lengths(facts: Facts, source: Source | None) -> tuple[int, ...]:
    """The length of each token as text in UTF-8; () of data that is no text."""
    if is_bpe(source):
        return source.bpe.tokenizer.lengths
    return tuple(map(len, token_bytes(facts, unit_of(facts, source))))


def unit_of(facts: Facts, source: Source | None) -> str | None:
    """What a token of a text is; None for other data."""
    unit: str | None = getattr(facts, "unit", None) or getattr(source, "unit", None)
    return unit


def is_bpe(source: Source | None) -> TypeGuard[TextSource]:
    """Whether the data is a text of a tokenizer's tokens."""
    return getattr(source, "unit", None) == "bpe"


def token_bytes(facts: Facts, unit: str | None) -> list[bytes]:
    """The bytes of UTF-8 that each token of the vocabulary stands for, by its number.

    Empty where tokens stand for no text.
    """
    if unit is None:
        return []
    if unit == "bytes":
        return [bytes([i]) if i < 256 else _NO_BYTE for i in range(facts.vocab or 0)]
    return [label.encode("utf-8", "surrogatepass") for label in facts.labels]


class Speller:
    """The text of tokens that come one by one, up to the first of `stops`, which is left out.

    So is a token of `stop_tokens`, which ends it too. What may be the beginning of a stop text is
    held back until it is known.

    Attributes:
        ended: a stop text or token has come.
        tokens: how many came until then.
    """

    def __init__(
        self, decoder: Decoder, stops: Sequence[str] = (), stop_tokens: Collection[int] = ()
    ) -> None:
        self._decoder = decoder
        self._stops = stops
        self._stop_tokens = stop_tokens
        self._held = ""
        self.ended = False
        self.tokens = 0

    def add(self, token: int) -> str:
        """What is to be shown once this token is there."""
        if self.ended:
            return ""
        self.tokens += 1
        if token in self._stop_tokens:
            piece, self.ended = self.end(), True
            return piece
        return self._shown(self._decoder.add(token))

    def end(self) -> str:
        """What is to be shown where no token comes any more."""
        if self.ended:
            return ""
        piece = self._shown(self._decoder.end())
        return piece if self.ended else piece + self._held

    def _shown(self, text: str) -> str:
        self._held += text
        places = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        self.ended = bool(places)
        safe = min(places) if places else len(self._held) - self._undecided()
        piece, self._held = self._held[:safe], self._held[safe:]
        return piece

    def _undecided(self) -> int:
        """How many characters at the end may begin a stop text."""
        longest = min(len(self._held), max(map(len, self._stops), default=1) - 1)
        ends = (self._held[-count:] for count in range(longest, 0, -1))
        return next((len(end) for end in ends if any(s.startswith(end) for s in self._stops)), 0)
