from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from idx_bytes import packed, write

from gradcli.data.text import TextSource
from gradcli.errors import ConfigError, DataError


def source(folder: Path, content: bytes, **options: object) -> TextSource:
    write(folder, text=content)
    made = TextSource(file="text", context=3, split={"train": "100%"}).locate(folder)
    return replace(made, **options)  # type: ignore[arg-type]


def test_the_vocabulary_is_sorted_by_bytes(tmp_path: Path) -> None:
    facts = source(tmp_path, "é b a Z".encode()).facts()
    assert facts.labels == (" ", "Z", "a", "b", "é")
    assert (facts.vocab, facts.classes, facts.input, facts.target) == (5, 5, (3,), (3,))
    assert facts.input_kind == "index"


def test_bytes_need_no_table(tmp_path: Path) -> None:
    assert source(tmp_path, b"\xff\x00abc", unit="bytes").facts().vocab == 256


def test_windows_predict_the_next_token(tmp_path: Path) -> None:
    from gradcli import engine

    split = source(tmp_path, b"abcdefgh").load().splits["train"]
    assert split.size == 2
    x, y = split.batch(engine.tensor([1, 0]))
    assert x.tolist() == [[3, 4, 5], [0, 1, 2]]
    assert y.tolist() == [[4, 5, 6], [1, 2, 3]]
    assert x.dtype is engine.int64


def test_the_last_window_has_its_target(tmp_path: Path) -> None:
    from gradcli import engine

    split = source(tmp_path, bytes(range(10)), unit="bytes", stride=2).load().splits["train"]
    assert split.size == 4
    assert split.batch(engine.tensor([3]))[1].tolist() == [[7, 8, 9]]


def test_splits_are_stretches_in_order(tmp_path: Path) -> None:
    from gradcli import engine

    made = source(tmp_path, bytes(range(20)), unit="bytes", split={"train": "80%", "val": "20%"})
    assert made.facts().sizes == {"train": 5, "val": 1}
    assert made.load().splits["val"].batch(engine.tensor([0]))[0].tolist() == [[16, 17, 18]]


def test_a_model_of_bytes_may_know_more_tokens(tmp_path: Path) -> None:
    assert source(tmp_path, b"abcd", unit="bytes", vocab=300).facts().vocab == 300
    for unit, vocab in (("bytes", 255), ("characters", 300)):
        with pytest.raises(ConfigError, match=f"got {vocab} for {unit}"):
            source(tmp_path, b"abcd", unit=unit, vocab=vocab)


def test_only_training_samples_overlap(tmp_path: Path) -> None:
    split: dict[str, int | str] = {"train": "50%", "val": "50%"}
    made = source(tmp_path, bytes(20), unit="bytes", stride=1, split=split)
    assert made.facts().sizes == {"train": 7, "val": 3}
    assert made.load().splits["val"].size == 3


def test_the_outline_follows_a_file_that_changes(tmp_path: Path) -> None:
    for content in (b"abcdefgh", b"abcdefghijklmnop"):
        text = source(tmp_path, content)
        assert text.outline(text.facts())["train"].tokens.shape == (len(content),)


def test_the_outline_counts_bytes_where_a_token_is_one(tmp_path: Path) -> None:
    text = source(tmp_path, "ééééé".encode())
    in_bytes = replace(text, unit="bytes")
    facts = in_bytes.facts()
    assert text.outline(text.facts())["train"].tokens.shape == (5,)
    assert in_bytes.outline(facts)["train"].tokens.shape == (10,)


def test_the_outline_of_a_text_that_was_not_read_has_whole_windows(tmp_path: Path) -> None:
    text = source(tmp_path, b"abcdefghi")
    facts = text.facts()
    again = replace(text)
    assert again.outline(facts)["train"].tokens.shape == (facts.sizes["train"] * 3 + 1,)


def test_a_split_below_one_window_is_refused_with_counts(tmp_path: Path) -> None:
    made = source(tmp_path, bytes(20), unit="bytes", split={"train": 17, "val": 3})
    with pytest.raises(DataError, match="val split has 3 tokens; a context of 3 needs at least 4"):
        made.facts()


def test_an_empty_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the text is empty"):
        source(tmp_path, b"").facts()


def test_bytes_that_are_not_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"text:2: not UTF-8 text: byte 0xff at byte offset 3"):
        source(tmp_path, b"ab\n\xff").facts()


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.data.files.UNPACKED_LIMIT", 1000)
    with pytest.raises(DataError, match="more than the 1000 bytes"):
        source(tmp_path, packed(bytes(100_000))).facts()


@pytest.mark.parametrize("options", [{"context": 0}, {"stride": 0}, {"context": 1 << 40}])
def test_impossible_windows_are_a_config_error(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be 1 to"):
        TextSource(file="x", **options)  # type: ignore[arg-type]


def test_predict_reads_windows_end_to_end(tmp_path: Path) -> None:
    made = source(tmp_path, b"abcdefgh").load()
    write(tmp_path, new=b"hgfed", odd=b"abc?", short=b"ab")
    unseen = made.read(tmp_path / "new")
    assert unseen.inputs.tolist() == [[7, 6, 5], [5, 4, 3]]
    assert unseen.names == ["new:0", "new:2"]
    with pytest.raises(DataError, match=r"odd:1: the character '\?' did not occur"):
        made.read(tmp_path / "odd")
    with pytest.raises(DataError, match="2 tokens are too few"):
        made.read(tmp_path / "short")
