"""Tokenizers give the tokens of their library, and say what is wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bpe_files import STORY, tokenizer_of, tokenizers, write_parts, write_tokenizer

from gradcli.data.bpe.tokenizer import END, tokenizer_at, trained_tokenizer
from gradcli.errors import DataError

KINDS = ["gpt2", "llama3", "llama2", "words"]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_become_the_tokens_of_the_library_and_tokens_its_texts(
    kind: str, tmp_path: Path
) -> None:
    library = write_tokenizer(tmp_path / "tokenizer.json", kind)
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        tokenizer = tokenizer_at(path)
        tokens = library.encode(STORY, add_special_tokens=False).ids
        assert tokenizer.encode(STORY) == tokens
        assert tokenizer.encode_all(["", STORY, " a"])[1] == tokens
        assert tokenizer.decode(tokens) == library.decode(tokens, skip_special_tokens=False)
        assert tokenizer.vocab == library.get_vocab_size()
    stream = tokenizer.stream()
    assert "".join(map(stream, tokens)) == tokenizer.decode(tokens).rstrip("\ufffd")


def test_what_stands_around_every_text_padding_and_truncation_are_left_out(tmp_path: Path) -> None:
    library = tokenizer_of("gpt2")
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{END} $A {END}", special_tokens=[(END, 0)]
    )
    library.enable_truncation(3)
    library.enable_padding(length=10)
    path = tmp_path / "tokenizer.json"
    path.write_text(library.to_str(), encoding="utf-8")
    assert tokenizer_at(path).encode(STORY) == tokenizer_of("gpt2").encode(STORY).ids


def test_gpt2_may_lie_in_its_two_older_files(tmp_path: Path) -> None:
    library = write_parts(tmp_path)
    tokenizer = tokenizer_at(tmp_path)
    assert tokenizer.encode(STORY + END) == library.encode(STORY + END).ids
    assert tokenizer.end == library.token_to_id(END)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(DataError, match=r"or both vocab.json and merges\.txt"):
        tokenizer_at(tmp_path)


def test_the_end_of_a_document_is_a_well_known_token_or_the_one_that_is_named(
    tmp_path: Path,
) -> None:
    ends = {"gpt2": END, "llama3": "<eos>", "llama2": "</s>", "words": None}
    for kind, end in ends.items():
        library = write_tokenizer(tmp_path / "tokenizer.json", kind)
        expected = None if end is None else library.token_to_id(end)
        assert tokenizer_at(tmp_path).end == expected
    assert tokenizer_at(tmp_path, "<unk>").end == library.token_to_id("<unk>")
    with pytest.raises(DataError, match="no token '<unkn>'; did you mean '<unk>'"):
        tokenizer_at(tmp_path, "<unkn>")


def test_training_gives_the_same_tokenizer_each_time_and_its_size() -> None:
    texts = [STORY[i : i + 40] for i in range(0, len(STORY), 40)] * 3
    one, other = (trained_tokenizer(iter(texts), 300) for _ in range(2))
    assert one.text == other.text
    assert one.vocab == 300
    assert one.end == one.numbers[END]
    assert one.decode(one.encode(STORY)) == STORY


def test_an_error_in_the_texts_is_not_told_as_one_of_the_library() -> None:
    def texts() -> Any:
        yield STORY
        raise DataError("story.txt:7: not UTF-8 text")

    with pytest.raises(DataError, match=r"^story\.txt:7: not UTF-8 text$"):
        trained_tokenizer(texts(), 300)


BROKEN: list[tuple[str, str]] = [
    ("", "not a tokenizer that can be used"),
    ("[]", "not a tokenizer that can be used"),
    ('{"version": "1.0"}', "not a tokenizer that can be used"),
    ('{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}', "found 0"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_no_tokenizer_is_told_with_its_file(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(DataError, match=f"tokenizer.json: .*{message}"):
        tokenizer_at(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("vocab.json", "[1]", "an object with the number of each token"),
        ("vocab.json", "{", "not JSON"),
        ("vocab.json", '{"a": 1.5}', "an object with the number of each token"),
        ("merges.txt", "#version: 0.2\na b c\n", "merges.txt:2: expected two tokens"),
        ("merges.txt", "a nothing\n", "not a tokenizer that can be used"),
    ],
)
def test_spoilt_parts_are_told_with_their_file(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    write_parts(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        tokenizer_at(tmp_path)


def test_a_vocabulary_with_holes_has_a_name_for_each_number(tmp_path: Path) -> None:
    write_parts(tmp_path)
    path = tmp_path / "vocab.json"
    numbers = json.loads(path.read_text())
    last = max(numbers, key=numbers.__getitem__)
    path.write_text(json.dumps({**numbers, last: 500}))
    tokenizer = tokenizer_at(tmp_path)
    assert tokenizer.vocab == len(tokenizer.names) == 501
    assert tokenizer.names[499:] == ["499", last]


@pytest.mark.parametrize("kind", ["gpt2", "llama3"])
def test_tokens_are_as_long_as_the_text_that_they_spell(kind: str, tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", kind)
    tokenizer = tokenizer_at(tmp_path)
    tokens = tokenizer.encode(STORY)
    assert sum(tokenizer.lengths[token] for token in tokens) == len(STORY.encode())
    assert tokenizer.end is not None
    assert tokenizer.lengths[tokenizer.end] == 0


def test_a_token_of_llama_is_as_long_as_its_text_with_the_space_before_it(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", "llama2")
    tokenizer = tokenizer_at(tmp_path)
    tokens = tokenizer.encode(STORY)
    assert sum(tokenizer.lengths[token] for token in tokens) == len(STORY.encode()) + 1
    word = next(name for name in tokenizer.numbers if name[0] == "\u2581" and name[1:].isascii())
    assert tokenizer.lengths[tokenizer.numbers[word]] == len(word)  # a letter each, and a space
