"""Tokens as text, piece by piece, cut before what stops it."""

from __future__ import annotations

import pytest

from gradcli.data.facts import DataSpec
from gradcli.train.spelling import BytesDecoder, Speller, token_bytes


def spelled(unit: str | None, vocab: int, labels: tuple[str, ...] = ()) -> list[bytes]:
    facts = DataSpec((4,), "index", (4,), vocab, vocab, labels, {"train": 9})
    return token_bytes(facts, unit)


def pieces(speller: Speller, tokens: list[int]) -> list[str]:
    return [*(speller.add(token) for token in tokens), speller.end()]


def test_a_token_is_the_bytes_of_its_label_or_one_byte() -> None:
    assert spelled("characters", 3, ("a", "ä", "€")) == [
        b"a",
        b"\xc3\xa4",
        b"\xe2\x82\xac",
    ]
    octets = spelled("bytes", 258)
    assert octets[:256] == [bytes([i]) for i in range(256)]
    assert octets[256:] == [b"\xff"] * 2
    assert spelled(None, 9) == []


def test_characters_come_once_their_bytes_are_there() -> None:
    speller = Speller(BytesDecoder(spelled("bytes", 256)))
    assert pieces(speller, [*"aä".encode(), 255, 0xE2, 0x82]) == ["a", "", "ä", "�", "", "", "�"]
    assert speller.tokens == 6


LETTERS = tuple("abcdefgh")


@pytest.mark.parametrize(
    ("text", "stops", "shown"),
    [
        ("abcd", [], ["a", "b", "c", "d", ""]),
        ("abcd", ["c"], ["a", "b", "", "", ""]),
        ("abcde", ["cd"], ["a", "b", "", "", "", ""]),
        ("abcee", ["cd"], ["a", "b", "", "ce", "e", ""]),
        ("abc", ["cd"], ["a", "b", "", "c"]),
        ("aabaac", ["aac"], ["", "", "aab", "", "", "", ""]),
        ("abce", ["bcd", "ce"], ["a", "", "", "b", ""]),
        ("abcd", ["bcd", "c"], ["a", "", "b", "", ""]),
        ("abab", ["abab"], ["", "", "", "", ""]),
    ],
)
def test_a_text_ends_right_before_a_stop(text: str, stops: list[str], shown: list[str]) -> None:
    speller = Speller(BytesDecoder([letter.encode() for letter in LETTERS]), stops)
    assert pieces(speller, [LETTERS.index(letter) for letter in text]) == shown
    whole = "".join(shown)
    assert speller.at_end == (whole != text)
    assert not any(stop in whole for stop in stops)


def test_a_stop_spans_the_bytes_of_a_character_and_tokens_of_several() -> None:
    speller = Speller(BytesDecoder([b"x", b"\xc3", b"\xa4y", b"yz"]), ["äyyz"])
    assert pieces(speller, [0, 1, 2, 3, 0]) == ["x", "", "", "", "", ""]
    assert (speller.at_end, speller.tokens) == (True, 4)


@pytest.mark.parametrize(
    ("text", "stops", "shown"),
    [
        ("abgc", [], ["a", "b", "", "", ""]),
        ("gabc", [], ["", "", "", "", ""]),
        ("abcg", ["cd"], ["a", "b", "", "c", ""]),
        ("abcdg", ["cd"], ["a", "b", "", "", "", ""]),
    ],
)
def test_a_stop_token_ends_a_text_and_is_not_shown(
    text: str, stops: list[str], shown: list[str]
) -> None:
    speller = Speller(BytesDecoder([letter.encode() for letter in LETTERS]), stops, {6})
    assert pieces(speller, [LETTERS.index(letter) for letter in text]) == shown
    assert speller.at_end


def test_a_stop_token_behind_half_a_character_shows_that_it_is_none() -> None:
    speller = Speller(BytesDecoder([b"x", b"\xc3", b"."]), (), {2})
    assert pieces(speller, [0, 1, 2, 0]) == ["x", "", "\ufffd", "", ""]
    assert (speller.at_end, speller.tokens) == (True, 3)
