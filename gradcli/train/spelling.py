"""What tokens of a text spell: the bytes of each, and the characters of many, piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from gradcli.data.facts import Facts

_NO_BYTE = b"\xff"  # part of no character


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

    What is or makes up no character is U+FFFD. What may be the beginning of a stop text is held
    back until it is known.

    Attributes:
        ended: a stop text has come.
        tokens: how many came until then.
    """

    def __init__(self, spelled: Sequence[bytes], stops: Sequence[str] = ()) -> None:
        self._spelled = spelled
        self._stops = stops
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.ended = False
        self.tokens = 0

    def add(self, token: int) -> str:
        """What is to be shown once this token is there."""
        if self.ended:
            return ""
        self.tokens += 1
        return self._shown(self._decoder.decode(self._spelled[token]))

    def end(self) -> str:
        """What is to be shown where no token comes any more."""
        if self.ended:
            return ""
        piece = self._shown(self._decoder.decode(b"", final=True))
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
