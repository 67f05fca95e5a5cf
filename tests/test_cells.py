"""Text in the cells of a terminal: wide characters, wrapping, windows on long lines."""

from __future__ import annotations

import pytest

from gradcli.cells import cells, printable, shorten, window, wrap

HOUSES = (
    "data: {name: csv, file: houses.csv, target: price, task: regression, "
    "numeric: [area, rooms, year], category: [city, heating], missing: mean}"
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("😀", 2), ("ﾊ", 1), ("…", 1), ("", 0)],
)
def test_a_wide_character_takes_two_cells_and_a_combining_one_none(text: str, size: int) -> None:
    assert cells(text) == size


def test_what_moves_a_cursor_is_shown_as_its_escape() -> None:
    assert printable("a\x1b[31mb\u202ec\td") == r"a\x1b[31mb\u202ec" + "\td"
    assert printable("äł", "latin-1") == r"ä\u0142"


class TestWrapped:
    def test_breaks_between_words_with_an_indent(self) -> None:
        text = "error[E302] a sentence of words that are not broken"
        assert wrap(text, 24) == [
            "error[E302] a sentence",
            "  of words that are not",
            "  broken",
        ]

    def test_keeps_figures_with_their_names(self) -> None:
        text = "val.loss 0.0637  val.accuracy 0.9842  test.accuracy 0.9813"
        assert wrap(text, 40) == [
            "val.loss 0.0637  val.accuracy 0.9842",
            "  test.accuracy 0.9813",
        ]

    def test_a_word_wider_than_the_screen_stays_whole(self) -> None:
        assert wrap("read " + "x" * 50 + " now", 20) == ["read", "  " + "x" * 50, "  now"]

    @pytest.mark.parametrize("text", ["", "short", "  = note", "a  b"])
    def test_what_fits_stays_as_it_is(self, text: str) -> None:
        assert wrap(text, 20) == [text]
        assert wrap(text * 40, None) == [text * 40]

    def test_a_wide_indent_is_no_reason_to_be_wider(self) -> None:
        assert wrap("        99 kB of a step", 20) == ["        99 kB of a", "  step"]

    def test_counts_cells(self) -> None:
        assert wrap("日本語 日本語 日本語", 14) == ["日本語 日本語", "  日本語"]


@pytest.mark.parametrize(("width", "text"), [(9, "日本語abc"), (7, "日本語…"), (6, "日本…")])
def test_shortened_counts_cells(width: int, text: str) -> None:
    assert shorten("日本語abc", width) == text


@pytest.mark.parametrize("width", range(3, 12))
def test_shortened_with_its_end_keeps_both(width: int) -> None:
    text = shorten("class-of-日本-7", width, with_end=True)
    assert cells(text) in (width - 1, width)
    assert (text[0], text[-1]) == ("c", "7")


class TestWindow:
    @pytest.mark.parametrize("width", [20, 33, 60, 100, None])
    @pytest.mark.parametrize("word", ["data", "houses", "regression", "area", "mean", "}"])
    def test_shows_what_is_marked_and_fits(self, width: int | None, word: str) -> None:
        part = window(HOUSES, HOUSES.index(word), len(word), width)
        assert part.text[part.start : part.start + part.size] == word
        assert cells(part.text) <= (width or len(HOUSES))
        assert (part.text[0] == "…") == (not HOUSES.startswith(part.text[:5]))
        assert (part.text[-1] == "…") == (not HOUSES.endswith(part.text[-5:]))

    def test_uses_all_cells_there_are(self) -> None:
        for at in range(len(HOUSES)):
            assert cells(window(HOUSES, at, 1, 40).text) == 40

    def test_counts_wide_characters_before_the_mark(self) -> None:
        part = window("日本: {x: 3}", 5, 1, None)
        assert (part.start, part.size) == (7, 1)
        assert window("x: 日本", 3, 2, None).size == 4

    def test_a_tab_becomes_blanks_and_an_escape_takes_its_cells(self) -> None:
        assert window("\tx", 1, 1, None).start == 4
        assert window("\x1b x", 2, 1, None).start == len(r"\x1b ")

    def test_a_terminal_without_the_sign_of_a_cut_gets_dots(self) -> None:
        text = window(HOUSES, 60, 3, 40, "ascii").text
        assert text.startswith("...")
        assert text.endswith("...")
        assert len(text) == 40

    def test_a_mark_wider_than_the_screen_is_cut(self) -> None:
        part = window(HOUSES, 18, 100, 30)
        assert part.start + part.size <= 30
        assert part.size > 20

    def test_a_place_behind_the_end_is_shown(self) -> None:
        assert window("abc", 3, 1, None).start == 3
        assert window("abc", 30, 0, None).start == 3
