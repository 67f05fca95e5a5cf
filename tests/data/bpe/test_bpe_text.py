"""`data: {name: text, unit: bpe}`: windows of tokens, in memory and prepared, of several files."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bpe_files import STORY, write_tokenizer

from gradcli import engine
from gradcli.data.bpe import encoding, source
from gradcli.data.bpe.tokenizer import tokenizer_at
from gradcli.data.dataset import Split
from gradcli.data.facts import DataFacts
from gradcli.data.prepared import mapped
from gradcli.data.split import cut
from gradcli.data.text import TextSource
from gradcli.errors import ConfigError, DataError


def text_source(folder: Path, **keys: Any) -> TextSource:
    whole: dict[str, Any] = {"unit": "bpe", "context": 8, "cache": "cache", **keys}
    return TextSource(**whole).locate(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path / "tokenizer.json")
    rng = random.Random(1)
    for name in "ab":
        words = [rng.choice(STORY.split(" ")) for _ in range(300)]
        (tmp_path / f"{name}.txt").write_text(" ".join(words), encoding="utf-8")
    return tmp_path


def mapped_in(folder: Path) -> list[Path]:
    return [one.path for one in mapped.mappings() if one.path.is_relative_to(folder)]


def numbers(splits: Mapping[str, Split]) -> dict[str, list[list[int]]]:
    every = {name: split.batch(engine.arange(split.size)) for name, split in splits.items()}
    return {name: [*x.tolist(), *y.tolist()] for name, (x, y) in every.items()}


@pytest.mark.parametrize("keys", [{"file": "a.txt"}, {"file": "*.txt", "stride": 3}], ids=str)
def test_splits_are_stretches_of_the_tokens_of_all_files(keys: Any, folder: Path) -> None:
    data = text_source(folder, tokenizer="tokenizer.json", **keys)
    loaded, tokenizer = data.load(), tokenizer_at(folder)
    tokens: list[int] = []
    for path in sorted(folder.glob(keys["file"])):
        tokens += [*tokenizer.encode(path.read_text(encoding="utf-8")), tokenizer.end or 0]
    begins = cut({"train": "90%", "val": "10%"}, len(tokens))["val"].start
    split = loaded.splits["train"]
    for i in (0, 1, split.size - 1):
        x, y = split.batch(engine.tensor([i]))
        begin = i * keys.get("stride", 8)
        assert x[0].tolist() == tokens[begin : begin + 8]
        assert y[0].tolist() == tokens[begin + 1 : begin + 9]
    x, _ = loaded.splits["val"].batch(engine.tensor([0]))
    assert x[0].tolist() == tokens[begins : begins + 8]
    facts = loaded.facts
    assert isinstance(facts, DataFacts)
    assert facts.vocab == tokenizer.vocab
    assert facts.tokenizer == tokenizer.sha256 == loaded.sha256["tokenizer"]
    assert list(facts.problems()) == []
    assert {name: split.size for name, split in loaded.splits.items()} == facts.sizes
    outline = data.outline(facts)
    assert {name: split.size for name, split in outline.items()} == facts.sizes


@pytest.mark.parametrize("tokenizer", ["tokenizer.json", {"train": 300}], ids=str)
def test_prepared_tokens_are_those_in_memory(
    tokenizer: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = text_source(folder, file="*.txt", tokenizer=tokenizer)
    memory = data.load()
    assert not mapped_in(folder)
    monkeypatch.setattr(source, "SMALL", -1)
    monkeypatch.setattr(encoding, "_PORTION", 200)
    there = text_source(folder, file="*.txt", tokenizer=tokenizer).load()
    assert len(mapped_in(folder)) == 1
    assert numbers(there.splits) == numbers(memory.splits)
    assert dict(there.sha256) == dict(memory.sha256)
    assert there.facts == memory.facts
    outline = text_source(folder, file="*.txt", tokenizer=tokenizer).outline(memory.facts)
    assert {name: one.size for name, one in outline.items()} == memory.facts.sizes


SPLITS: list[Any] = [None, {"train": 900, "val": 90, "test": 10}, {"train": "90%", "val": "10%"}]


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("key", [None, "text"])
def test_a_tokenizer_is_trained_on_the_training_split_alone(
    split: Any, key: str | None, folder: Path
) -> None:
    words = ["abcd "] * 80 + ["klmn "] * 10 + ["wxyz "] * 10
    lines = [word * 10 for word in words]
    text = "\n".join(json.dumps({"text": line}) for line in lines) if key else "".join(lines)
    (folder / "c.txt").write_text(text)
    data = text_source(folder, file="c.txt", tokenizer={"train": 280}, split=split, key=key)
    names = "".join(data.bpe.tokenizer.numbers)
    assert "abcd" in names
    assert "klmn" in names
    assert "wx" not in names


def test_documents_without_a_token_between_them_are_told(folder: Path) -> None:
    write_tokenizer(folder / "words.json", "words")
    for file, told in (("*.txt", True), ("a.txt", False)):
        notes = text_source(folder, file=file, tokenizer="words.json").load().notes
        assert any("data.end names one" in note for note in notes) == told
    named = text_source(folder, file="*.txt", tokenizer="words.json", end="<unk>")
    assert named.load().notes == ()


def test_new_texts_are_cut_like_the_text_that_was_trained_on(folder: Path) -> None:
    data = text_source(folder, file="a.txt", tokenizer="tokenizer.json")
    facts = data.load().facts
    assert isinstance(facts, DataFacts)
    tokens = [*data.bpe.tokenizer.encode((folder / "b.txt").read_text(encoding="utf-8")), 0]
    unseen = data.new_inputs(folder / "b.txt", facts)
    assert unseen.inputs[:].tolist()[0] == tokens[:8]
    assert unseen.inputs[:].tolist()[-1] == tokens[-8:]
    x, y = data.new_split(folder / "b.txt", facts).split.batch(engine.tensor([2]))
    assert (x[0].tolist(), y[0].tolist()) == (tokens[16:24], tokens[17:25])
    (folder / "short.txt").write_text("a b")
    split = {"train": "100%"}
    with pytest.raises(DataError, match=r"short\.txt: .* too few: a context of 8 needs 9"):
        data.new_split(folder / "short.txt", facts)
    with pytest.raises(DataError, match=r"short\.txt: the train split has .* at least 9"):
        text_source(folder, file="short.txt", tokenizer="tokenizer.json", split=split).facts()


def test_another_tokenizer_is_no_longer_that_of_the_facts(folder: Path) -> None:
    data = text_source(folder, file="a.txt", tokenizer="tokenizer.json")
    facts = data.load().facts
    assert isinstance(facts, DataFacts)
    assert list(data.misfits(facts)) == []
    write_tokenizer(folder / "tokenizer.json", "llama3")
    other = text_source(folder, file="a.txt", tokenizer="tokenizer.json")
    assert next(field for field, _ in other.misfits(facts)) == "tokenizer"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "tokenizer is missing"),
        ({"tokenizer": {"train": 10}}, "N from 257"),
        ({"tokenizer": {"learn": 300}}, r"\{train: N\}"),
        (
            {"tokenizer": {"train": 300}, "end": "x"},
            "end is the token of a tokenizer that is there",
        ),
        ({"unit": "bytes", "tokenizer": "t.json"}, "tokenizer is for `unit: bpe`"),
        ({"unit": "characters", "key": "text"}, "key is for `unit: bpe`"),
        ({"tokenizer": "t.json", "vocab": 300}, "vocab is for `unit: bytes`"),
    ],
)
def test_keys_that_contradict_others_are_refused(keys: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TextSource(**{"file": "a.txt", "unit": "bpe", **keys})
