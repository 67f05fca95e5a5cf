"""Documents become the tokens of the whole, however their text comes, and a token behind each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from bpe_files import STORY, write_tokenizer

from gradcli.data.bpe import encoding
from gradcli.data.bpe.documents import Part, documents
from gradcli.data.bpe.tokenizer import Tokenizer, tokenizer_at
from gradcli.errors import DataError

WORDS = STORY.split(" ")


def long_text(rng: random.Random, words: int) -> str:
    joints = [" ", " ", " ", " ", "  ", "\n", "\n\n", "", ", ", " \n ", "\t"]
    return "".join(rng.choice(WORDS) + rng.choice(joints) for _ in range(words))


def in_pieces(text: str, rng: random.Random) -> Iterator[Part]:
    while text:
        size = rng.randrange(1, 400)
        yield text[:size], False
        text = text[size:]
    yield "", True


def encoded(parts: Iterator[Part], tokenizer: Tokenizer) -> list[int]:
    return [token for some in encoding.encoded(parts, tokenizer) for token in some]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_PORTION", 300)
    monkeypatch.setattr(encoding, "_BATCH", 1000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["gpt2", "llama3", "llama2", "words"])
def test_a_long_document_has_the_tokens_of_the_whole(kind: str, tmp_path: Path) -> None:
    library = write_tokenizer(tmp_path / "tokenizer.json", kind)
    tokenizer = tokenizer_at(tmp_path)
    for seed in range(12):
        rng = random.Random(seed)
        text = long_text(rng, rng.randrange(1, 900))
        expected = library.encode(text, add_special_tokens=False).ids
        end = [] if tokenizer.end is None else [tokenizer.end]
        assert encoded(in_pieces(text, rng), tokenizer) == expected + end


@pytest.mark.usefixtures("small")
def test_a_text_without_words_is_encoded_whole(tmp_path: Path) -> None:
    library = write_tokenizer(tmp_path / "tokenizer.json")
    text = "1234567890" * 500
    tokens = encoded(iter([(text, False), ("x", True)]), tokenizer_at(tmp_path))
    assert tokens[:-1] == library.encode(text + "x").ids


def test_each_document_ends_with_its_token(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json")
    tokenizer = tokenizer_at(tmp_path)
    path = tmp_path / "texts.jsonl"
    path.write_text('{"t": "a b"}\n\n{"t": ""}\r\n{"u": 1, "t": "c\\u00e9\\n"}')
    tokens = encoded(documents(path, "t"), tokenizer)
    parts: list[int] = []
    for text in ("a b", "", "cé\n"):
        parts += [*tokenizer.encode(text), tokenizer.end or 0]
    assert tokens == parts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":2: expected a JSON object in each line"),
        ("[1]", ":2: expected an object with the key 't'"),
        ('{"u": 1, "v": 2}', ":2: expected an object with the key 't'; its keys: u, v"),
        ('{"t": 3}', ":2: expected text under 't', found int"),
        ('{"t": "\\ud800"}', ":2: half of a surrogate pair"),
    ],
)
def test_a_line_that_is_no_document_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"t": "fine"}\n' + line + "\n")
    with pytest.raises(DataError, match=message.replace("[", r"\[")):
        list(documents(path, "t"))
