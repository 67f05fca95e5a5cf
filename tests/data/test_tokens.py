"""Raw files of tokens: windows as of a text, whatever the type, the header and the shards."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import token_windows
from gradcli.data.samples import Windows, tensor_of
from gradcli.data.targets import class_counts, with_targets
from gradcli.data.token_windows import TokenWindows
from gradcli.data.tokens import TokenSource
from gradcli.errors import ConfigError, DataError

CODES = {"uint8": "B", "uint16": "H", "int32": "i", "uint32": "I"}
TOKENS = [(7 * i * i + 3 * i) % 251 for i in range(400)]


def write(path: Path, tokens: Sequence[int], kind: str = "uint16", header: int = 0) -> str:
    path.write_bytes(bytes(header) + array(CODES[kind], tokens).tobytes())
    os.utime(path, (1e9, 1e9))
    return str(path)


def loaded(source: TokenSource) -> Any:
    there = source.load()
    assert source.facts().sizes == {name: split.size for name, split in there.splits.items()}
    return there


def samples(split: Any) -> list[list[int]]:
    inputs, targets = split.batch(engine.arange(split.size, dtype=engine.int64))
    assert inputs[:, 1:].tolist() == targets[:, :-1].tolist()
    return [[*row, last[-1]] for row, last in zip(inputs.tolist(), targets.tolist(), strict=True)]


@pytest.mark.parametrize("header", [0, 8, 1024])
@pytest.mark.parametrize("kind", CODES)
def test_windows_are_those_of_a_text(kind: str, header: int, tmp_path: Path) -> None:
    tokens = [t * (257 if kind != "uint8" else 1) for t in TOKENS]
    path = write(tmp_path / "t.bin", tokens, kind, header)
    vocab = None if kind in ("uint8", "uint16") else 70000
    source = TokenSource(file=path, type=kind, header=header, vocab=vocab, context=9, stride=4)  # type: ignore[arg-type]
    there = loaded(source)
    for name, part, stride in (("train", tokens[:360], 4), ("val", tokens[360:], 9)):
        text = Windows(tensor_of(array("q", part), (len(part),)), 9, stride)
        assert samples(there.splits[name]) == samples(text)
    assert list(there.sha256) == ["train"]
    assert len(there.sha256["train"]) == 64


@pytest.mark.parametrize("size", [0, 8])
@pytest.mark.parametrize("pattern", ["a.bin", "?.bin"])
def test_a_file_of_nothing_behind_its_header_is_refused_before_it_is_mapped(
    pattern: str, size: int, tmp_path: Path
) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(size))
    write(tmp_path / "b.bin", TOKENS, header=8)
    with pytest.raises(DataError, match=r"a\.bin: .* it holds no tokens"):
        TokenSource(file=str(tmp_path / pattern), header=8).load()


def test_every_token_of_16_bits_is_numpys(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy", reason="it says what a file of uint16 holds")
    path = tmp_path / "all.bin"
    numpy.arange(65536, dtype="<u2").tofile(path)
    split = TokenSource(file=str(path), context=255, split={"train": "100%"}).load().splits["train"]
    rows = [row[:-1] for row in samples(split)]
    expected = numpy.fromfile(path, dtype="<u2")[: 255 * len(rows)].reshape(-1, 255)
    assert rows == expected.tolist()


@pytest.mark.parametrize("kind", CODES)
def test_no_window_crosses_shards(kind: str, tmp_path: Path) -> None:
    lengths = [130, 5, 100, 165]
    shards, before = [], 0
    for number, length in enumerate(lengths):
        shards.append(TOKENS[before : before + length])
        write(tmp_path / f"s{number}.bin", shards[-1], kind, 16)
        before += length
    pattern = str(tmp_path / "s*.bin")
    source = TokenSource(
        file=pattern,
        type=kind,
        header=16,
        vocab=251,
        context=9,
        stride=5,
        split={"train": "100%"},  # type: ignore[arg-type]
    )
    there = loaded(source)
    expected = [
        shard[at : at + 10]
        for shard in shards
        for at in range(0, len(shard) - 9, 5)
        if len(shard) > 9
    ]
    assert samples(there.splits["train"]) == expected
    assert list(there.sha256) == [f"train[{i}]" for i in range(4)]
    indices = engine.tensor([len(expected) - 1, 0, 30, 25])
    inputs, _ = there.splits["train"].batch(indices)
    assert inputs.tolist() == [expected[i][:9] for i in indices.tolist()]


def test_a_split_cuts_shards_where_it_must(tmp_path: Path) -> None:
    write(tmp_path / "a1.bin", TOKENS[:200])
    write(tmp_path / "a2.bin", TOKENS[200:])
    source = TokenSource(
        file=str(tmp_path / "a?.bin"), context=9, split={"train": 250, "val": 60, "test": 90}
    )
    there = loaded(source)
    assert samples(there.splits["val"])[0] == TOKENS[250:260]
    assert samples(there.splits["train"])[-1] == TOKENS[200 + 9 * 4 : 200 + 9 * 4 + 10]


def test_a_file_of_its_own_may_be_the_val_split(tmp_path: Path) -> None:
    train, val = write(tmp_path / "t.bin", TOKENS[:300]), write(tmp_path / "v.bin", TOKENS[300:])
    there = loaded(TokenSource(file=train, val_file=val, context=9))
    assert samples(there.splits["val"])[0] == TOKENS[300:310]
    assert there.splits["train"].size == 33
    assert set(there.sha256) == {"train", "val"}


def test_counts_of_many_tokens_are_of_blocks_evenly_spaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.bin", TOKENS)
    split = TokenSource(file=path, vocab=251, split={"train": "100%"}).load().splits["train"]
    every = class_counts(split, 251)
    assert sum(every) == 400
    monkeypatch.setattr(token_windows, "BLOCK", 10)
    assert class_counts(split, 251) == every
    monkeypatch.setattr(token_windows, "COUNT_LIMIT", 50)
    some = class_counts(split, 251)
    assert sum(some) == 50
    begins = list(token_windows._begins(400))
    assert begins == [0, 97, 195, 292, 390]
    assert sum(some) == sum(len(TOKENS[begin : begin + 10]) for begin in begins)


def test_what_is_no_token_is_named_by_file_and_place(tmp_path: Path) -> None:
    tokens = [*TOKENS[:123], 300, *TOKENS[124:200]]
    write(tmp_path / "a1.bin", TOKENS[:200])
    write(tmp_path / "a2.bin", tokens)
    source = TokenSource(
        file=str(tmp_path / "a?.bin"), vocab=251, context=9, split={"train": "100%"}
    )
    there = source.load()
    sentence = r"a2\.bin: token 123 is 300, expected 0 to 250"
    with pytest.raises(DataError, match=sentence):
        with_targets(there)
    with pytest.raises(DataError, match=sentence):
        dict(there.sha256)
    split = there.splits["train"]
    assert isinstance(split, TokenWindows)
    split.look(engine.tensor([3, 20]))
    with pytest.raises(DataError, match=sentence):
        split.look(engine.tensor([3, 22 + 13]))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"type": "int32"}, "vocab is missing"),
        ({"vocab": 70000}, "vocab must be 1 to 65536 for uint16, got 70000"),
        ({"vocab": 0}, "vocab must be 1 to"),
        ({"header": 3}, "header must be .* a multiple of the 2 bytes of a token, got 3"),
        ({"context": 0}, "context must be"),
        ({"val_file": "v", "split": {"train": "100%"}}, "split and val_file"),
    ],
)
def test_keys_that_cannot_be_are_refused(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        TokenSource(file="t.bin", **keys)


@pytest.mark.parametrize(
    ("content", "keys", "sentence"),
    [
        (b"", {}, "it holds no tokens"),
        (bytes(16), {"header": 16}, "16 bytes, of which 16 are the header"),
        (bytes(201), {}, "no whole number of uint16"),
        (bytes(100), {"context": 60}, "no window in one file; a context of 60 needs 61"),
    ],
)
def test_files_that_cannot_be_are_refused(
    content: bytes, keys: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.bin"
    path.write_bytes(content)
    source = TokenSource(file="t.bin", **keys).locate(tmp_path)
    with pytest.raises(DataError, match=sentence) as raised:
        source.facts()
    assert raised.value.exit_code == 3


def test_a_pattern_without_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data file is called 'shards/\*\.bin'"):
        TokenSource(file="shards/*.bin").locate(tmp_path)


def test_new_files_are_read_end_to_end(tmp_path: Path) -> None:
    source = TokenSource(file=write(tmp_path / "t.bin", TOKENS), context=9, stride=2)
    path = Path(write(tmp_path / "new.bin", TOKENS[:30]))
    facts: Any = source.load().facts
    assert samples(source.new_split(path, facts).split) == [
        TOKENS[at : at + 10] for at in (0, 9, 18)
    ]
    assert source.new_inputs(path, facts).inputs[:].tolist()[2] == TOKENS[18:27]
    assert source.new_inputs(path, facts).names[2] == "new.bin:18"
