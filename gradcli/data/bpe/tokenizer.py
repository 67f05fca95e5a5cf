"""Tokenizers of the library `tokenizers` (extra `text`), which is imported only here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradcli.data.files import json_in, path_text, read, regular_size, text_of
from gradcli.errors import ConfigError, DataError, GradcliError
from gradcli.registry import did_you_mean
from gradcli.wording import quantity

FILE = "tokenizer.json"
PARTS = ("vocab.json", "merges.txt")
END = "<|endoftext|>"  # of a tokenizer that is trained here
MOST_TOKENS = 1 << 20
_LIMIT = 64 << 20  # bytes of a file
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
# What publishers call the token behind a document.
_ENDS = (END, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>", "<|eot_id|>")


class Tokenizer:
    """What turns a text into tokens and back.

    Attributes:
        text: all of it as JSON.
        end: the token behind a document; None where it has none.
    """

    def __init__(self, text: str, source: str, end: str | None = None) -> None:
        """The tokenizer that `text` describes; messages begin with `source`.

        `end` is written as in a text; left out, it is the one of a well-known name.

        Raises:
            DataError: it is no tokenizer, or has no such token.
        """
        self.text = text
        self._source = source
        self._library = _translate_errors(lambda: _module().Tokenizer.from_str(text), source)
        self._library.no_padding()
        self._library.no_truncation()
        numbers = self.numbers
        if not numbers or len(numbers) > MOST_TOKENS or max(numbers.values()) >= MOST_TOKENS:
            what = f"expected 1 to {MOST_TOKENS} tokens, found {len(numbers)}"
            raise DataError(f"{source}: {what}", code="E304")
        if end is not None and end not in numbers:
            cure = did_you_mean(end, numbers, "give one that the tokenizer has")
            raise DataError(f"data.end: {source} has no token {end!r}; {cure}", code="E304")
        usual = next((name for name in _ENDS if name in numbers), None)
        name = usual if end is None else end
        self.end = None if name is None else numbers[name]

    @cached_property
    def sha256(self) -> str:
        """The hash of its JSON."""
        return sha256(self.text.encode()).hexdigest()

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each token, as the tokenizer writes it."""
        return dict(self._library.get_vocab(with_added_tokens=True))

    @cached_property
    def names(self) -> list[str]:
        """Each token as the tokenizer writes it, and the number where there is none."""
        names = list(map(str, range(self.vocab)))
        for name, number in self.numbers.items():
            names[number] = name
        return names

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The bytes of text that each token stands for; 0 of the end and of its like.

        Where the tokenizer joins tokens by spaces of its own, those do not count.
        """
        special = {
            number
            for number, token in self._library.get_added_tokens_decoder().items()
            if token.special
        }
        in_bytes = '"ByteLevel"' in self.text
        return tuple(
            0 if number in special else _length(name, in_bytes=in_bytes)
            for number, name in enumerate(self.names)
        )

    @property
    def vocab(self) -> int:
        """Tokens are 0 to vocab - 1; a number may be of none."""
        return max(self.numbers.values()) + 1

    def number_of(self, token: str, key: str) -> int:
        """The number of a token, as the tokenizer writes it or as a text; errors begin with `key`.

        Raises:
            ConfigError: it has no such token.
        """
        if token in self.numbers:
            return self.numbers[token]
        tokens = self.encode(token)
        if len(tokens) == 1:
            return tokens[0]
        cure = did_you_mean(token, self.numbers, f"the text is {quantity(len(tokens), 'token')}")
        raise ConfigError(f"{key}: {self._source} has no token {token!r}; {cure}")

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any that stand before or behind every text."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The same of several texts, on all cores."""
        encode = self._library.encode_batch_fast
        parts = _translate_errors(
            lambda: encode(list(texts), add_special_tokens=False), self._source
        )
        return [part.ids for part in parts]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; what makes up no character is shown as U+FFFD."""
        decode = self._library.decode
        text: str = _translate_errors(
            lambda: decode(list(tokens), skip_special_tokens=False), self._source
        )
        return text

    def stream(self) -> Callable[[int], str]:
        """What gives the text that each further token completes; often none."""
        decoders = _module().decoders
        stream = decoders.DecodeStream(skip_special_tokens=False)
        return lambda token: (
            _translate_errors(lambda: stream.step(self._library, token), self._source) or ""
        )


def _length(name: str, *, in_bytes: bool) -> int:
    """The bytes of text that a token, in this spelling, stands for."""
    if in_bytes:  # a letter for each
        return len(name)
    return 1 if _BYTE.fullmatch(name) else len(name.replace("\u2581", " ").encode())


def tokenizer_at(path: Path, end: str | None = None) -> Tokenizer:
    """The one in a tokenizer.json, or in a folder that has it, or vocab.json and merges.txt."""
    if not path.is_dir():
        return Tokenizer(_content(path), path_text(path), end)
    if (path / FILE).is_file():
        return tokenizer_at(path / FILE, end)
    if not all((path / name).is_file() for name in PARTS):
        raise DataError(
            f"{path_text(path)} holds no tokenizer: expected {FILE}, or both {' and '.join(PARTS)}"
        )
    vocab, merges = (path / name for name in PARTS)
    return Tokenizer(_of_gpt2(_numbers(vocab), _merges(merges)), path_text(path), end)


def trained_tokenizer(texts: Iterator[str], size: int) -> Tokenizer:
    """Train a byte-level BPE of `size` tokens on texts, `<|endoftext|>` among them."""
    library = _module()
    levels = library.pre_tokenizers.ByteLevel
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = levels(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=sorted(levels.alphabet()),
        show_progress=False,
    )
    faults: list[GradcliError] = []
    _translate_errors(
        lambda: tokenizer.train_from_iterator(_until_a_fault(texts, faults), trainer), "training"
    )
    if faults:
        raise faults[0]
    return Tokenizer(tokenizer.to_str(), "the tokenizer that was trained")


def _until_a_fault(texts: Iterator[str], faults: list[GradcliError]) -> Iterator[str]:
    """The texts; the library would put another error in the place of ours."""
    try:
        yield from texts
    except GradcliError as error:
        faults.append(error)


def require_library() -> None:
    """Say what to install where the library is missing."""
    if find_spec("tokenizers") is None:
        raise ConfigError(
            "unit: bpe reads texts through tokenizers, which is not installed: "
            "pip install 'gradcli[text]'"
        )


def _module() -> Any:
    require_library()
    import tokenizers  # an extra, which takes as long to import as a small text to read

    return tokenizers


def _translate_errors(call: Callable[[], Any], source: str) -> Any:
    """Raise a DataError for whatever the library raises; it panics over some damaged files."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, MemoryError, GradcliError):
        raise
    except BaseException as error:
        reason = path_text(str(error).partition("\n")[0])[:200]
        raise DataError(
            f"{source}: not a tokenizer that can be used: {reason}", code="E302"
        ) from None


def _content(path: Path) -> str:
    size = regular_size(path)
    if size > _LIMIT:
        raise DataError(
            f"{path_text(path)}: {quantity(size, 'byte')}; a tokenizer has at most {_LIMIT}",
            code="E302",
        )
    return text_of(read(path), path_text(path))


def _numbers(path: Path) -> dict[str, int]:
    """vocab.json: the number of each token."""
    numbers = json_in(path, _LIMIT)
    if not isinstance(numbers, dict) or not all(type(number) is int for number in numbers.values()):
        what = "expected an object with the number of each token"
        raise DataError(f"{path_text(path)}: {what}", code="E304")
    return numbers


def _merges(path: Path) -> list[list[str]]:
    """merges.txt: two tokens a line, below a line with the version."""
    merges = []
    for number, line in enumerate(_content(path).split("\n"), 1):
        if line.startswith("#version") or not line.strip():
            continue
        pair = line.rstrip("\r").split(" ")
        if len(pair) != 2:
            what = f"expected two tokens, found {path_text(line)[:80]!r}"
            raise DataError(f"{path_text(path)}:{number}: {what}", code="E304")
        merges.append(pair)
    return merges


def _of_gpt2(numbers: Mapping[str, int], merges: Sequence[Sequence[str]]) -> str:
    """tokenizer.json of these tokens, split and written as GPT-2 does."""
    levels = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added_tokens = [
        {"id": numbers[name], "content": name, **special, "special": True}
        for name in _ENDS
        if name in numbers
    ]
    model = {"type": "BPE", "vocab": dict(numbers), "merges": [list(pair) for pair in merges]}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": added_tokens,
            "pre_tokenizer": {"type": "ByteLevel", **levels},
            "decoder": {"type": "ByteLevel", **levels},
            "model": model,
        }
    )
