"""Documents as tokens: encoded on all cores, in memory that does not grow with them."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Iterator

from gradcli.data.bpe.documents import Part
from gradcli.data.bpe.tokenizer import Tokenizer

_PORTION = 1 << 16  # characters that are encoded as one text
_BATCH = 1 << 22  # characters that are encoded at once
_AROUND = 64  # characters on both sides of a cut, by which it is judged
_TRIES = 16
_CUT = re.compile(r"(?<=[^\W\d_])(?= [^\W\d_])")  # in front of a word, where most tokens begin


def code_of(vocab: int) -> str:
    """How tokens are stored, as a type code of `array`."""
    return "H" if vocab <= 1 << 16 else "i"


def encoded(parts: Iterable[Part], tokenizer: Tokenizer) -> Iterator[array[int]]:
    """The tokens of documents, each with the token of the end behind it, lowest byte first."""
    code = code_of(tokenizer.vocab)
    end = [] if tokenizer.end is None else [tokenizer.end]
    batch: list[Part] = []
    size = 0
    for text, ends in _portions(parts, tokenizer):
        batch.append((text, ends))
        size += len(text) + 1
        if size >= _BATCH:
            yield _tokens(batch, tokenizer, code, end)
            batch, size = [], 0
    if batch:
        yield _tokens(batch, tokenizer, code, end)


def _tokens(batch: list[Part], tokenizer: Tokenizer, code: str, end: list[int]) -> array[int]:
    tokens = array(code)
    numbers = tokenizer.encode_all([text for text, _ in batch])
    for (_, ends), some in zip(batch, numbers, strict=True):
        tokens.extend(array(code, some))
        if ends:
            tokens.extend(end)
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens


def _portions(parts: Iterable[Part], tokenizer: Tokenizer) -> Iterator[Part]:
    """The same documents in parts whose tokens are those of the whole."""
    rest, least = "", _PORTION
    for text, ends in parts:
        rest, begin = rest + text, 0
        while len(rest) - begin >= least:
            cut = _cut(rest, begin, tokenizer)
            if not cut:  # nothing is cut off a text without words
                least = 2 * (len(rest) - begin)
                break
            yield rest[begin:cut], False
            begin, least = cut, _PORTION
        rest = rest[begin:]
        if ends:
            yield rest, True
            rest, least = "", _PORTION


def _cut(text: str, begin: int, tokenizer: Tokenizer) -> int:
    """Where a text can be cut so that its tokens stay the same; 0 where nothing shows that."""
    for number, match in enumerate(_CUT.finditer(text, begin + _PORTION // 2)):
        cut = match.start()
        if number == _TRIES or len(text) - cut < _AROUND:
            break
        before, behind = text[cut - _AROUND : cut], text[cut : cut + _AROUND]
        parts = tokenizer.encode_all([before + behind, before, behind])
        if parts[0] == parts[1] + parts[2]:
            return cut
    return 0
