"""A long text, read in blocks, prepared or mapped, is the text that memory would hold."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import long_text, text
from gradcli.data.dataset import LoadedData
from gradcli.data.tabular import pieces
from gradcli.data.targets import with_targets
from gradcli.data.text import TextSource
from gradcli.errors import DataError

DRAW = random.Random(1)
TEXTS = {
    "plain": "".join(DRAW.choice("abc \n") for _ in range(3000)),
    "of several alphabets": "".join(DRAW.choice("aé€\u4e2d\U0001f408\n\0") for _ in range(3000)),
    "of many characters": "".join(chr(DRAW.randrange(0x4E00, 0x5E00)) for _ in range(3000)),
    "with a mark": "\ufeffzabc" * 40,
}


def source(folder: Path, content: bytes, **options: Any) -> TextSource:
    (folder / "text").write_bytes(content)
    given = {"file": "text", "context": 5, "cache": "kept", **options}
    return TextSource(**given).locate(folder)


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is long, and is read in small pieces."""
    monkeypatch.setattr(text, "SMALL", -1)
    monkeypatch.setattr(text, "SMALL_GZIP", -1)
    monkeypatch.setattr(pieces, "PIECE", 61)
    monkeypatch.setattr(long_text, "_BLOCK_TOKENS", 100)
    monkeypatch.setattr(long_text, "_PORTION", 37)


def content(made: LoadedData) -> tuple[Any, ...]:
    made = with_targets(made)
    batches = {
        name: [one.tolist() for one in split.batch(engine.arange(split.size))]
        for name, split in made.splits.items()
    }
    return batches, made.facts, made.sha256, made.notes


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("options", [{}, {"unit": "bytes", "vocab": 300}, {"stride": 2}])
@pytest.mark.parametrize("name", TEXTS)
def test_it_is_the_text_that_memory_would_hold(
    tmp_path: Path, request: Any, name: str, options: dict[str, Any], packed: bool
) -> None:
    data = TEXTS[name].encode()
    data = gzip.compress(data) if packed else data
    whole = content(source(tmp_path, data, **options).load())
    assert not (tmp_path / "kept").exists()
    request.getfixturevalue("long")
    made = source(tmp_path, data, **options)
    sizes = made.facts().sizes
    outline = made.outline(made.facts())
    loaded = made.load()
    assert content(loaded) == whole
    assert (sizes, content(source(tmp_path, data, **options).load())) == (whole[1].sizes, whole)
    for split, one in outline.items():
        kept: Any = loaded.splits[split]
        assert (one.tokens.shape, one.tokens.dtype) == (kept.tokens.shape, kept.tokens.dtype)


@pytest.mark.usefixtures("long")
def test_it_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = source(tmp_path, TEXTS["plain"].encode())
    before = content(made.load())
    monkeypatch.setattr(long_text, "pieces_of", None)
    assert content(made.load()) == before
    assert content(source(tmp_path, TEXTS["plain"].encode(), context=5).load()) == before
    other = source(tmp_path, TEXTS["plain"].encode(), context=7, split={"train": 900, "val": 100})
    assert sum(with_targets(other.load()).facts.targets.counts) == 900  # type: ignore[attr-defined]


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("at", [0, 60, 61, 62, 121, 122, 123, 400])
def test_a_wrong_byte_is_told_with_its_line_and_offset(tmp_path: Path, at: int) -> None:
    good = "aé\n".encode() * 200
    data = good[:at] + b"\xff" + good[at:]
    with pytest.raises(DataError) as caught:
        source(tmp_path, data).facts()
    while at and (good[at] & 0xC0) == 0x80:  # the letter before it was not finished
        at -= 1
    line = data[:at].count(b"\n") + 1
    expected = f"text:{line}: not UTF-8 text: byte {data[at]:#04x} at byte offset {at}; `unit: by"
    assert expected in caught.value.message
    assert list((tmp_path / "kept").glob("text-*")) == []


@pytest.mark.usefixtures("long")
def test_a_bomb_a_torn_and_an_empty_text_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="gzip data ends early, at byte"):
        source(tmp_path, gzip.compress(TEXTS["plain"].encode())[:-9]).facts()
    with pytest.raises(DataError, match="text: the text is empty"):
        source(tmp_path, gzip.compress(b"")).facts()
    with pytest.raises(DataError, match="not UTF-8 text"):
        source(tmp_path, "abcé".encode()[:-1]).facts()
    monkeypatch.setattr(pieces, "PIECE", 1 << 20)
    with pytest.raises(DataError, match="packed bytes unpack to more than 4 MiB"):
        source(tmp_path, gzip.compress(bytes(5 << 20))).facts()


@pytest.mark.usefixtures("long")
def test_another_text_is_measured_on_and_may_hold_no_other_characters(tmp_path: Path) -> None:
    made = source(tmp_path, b"abc\n" * 50).load()
    (tmp_path / "new").write_bytes(b"cba\n" * 40)
    split: Any = made.read_split(tmp_path / "new").split
    assert (split.size, split.tokens[:4].tolist()) == (31, [3, 2, 1, 0])
    for odd in "?", "\U0001f408":
        (tmp_path / "new").write_text("cba\n" * 20 + f"ab{odd}b")
        with pytest.raises(DataError, match=r"new:21: the character '.' did not occur"):
            made.read_split(tmp_path / "new")


@pytest.mark.usefixtures("long")
def test_a_text_that_is_replaced_behind_its_hash_is_not_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = source(tmp_path, b"a text of bytes " * 20, unit="bytes")
    sha256_of = long_text.sha256_of

    def replaced(path: Path, *given: Any) -> str:
        sha256 = sha256_of(path, *given)
        other = path.with_name("other")
        other.write_bytes(b"another of bytes " * 20)
        other.replace(path)
        return sha256

    made.load()
    monkeypatch.setattr(long_text, "sha256_of", replaced)
    again = TextSource(file=made.file, unit="bytes", context=5, cache=made.cache)
    with pytest.raises(DataError, match="changed while it was opened"):
        again.load()
