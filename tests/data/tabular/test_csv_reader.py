"""The quick reading of CSV against the exact parser, on texts that are right and wrong."""

from __future__ import annotations

import codecs
import gzip
import io
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.data.csv_rows import ExactRows, parse_rows
from gradcli.data.files import load
from gradcli.data.tabular import cells as cells_module
from gradcli.data.tabular.cells import is_missing, number_of, numbers_of
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.pieces import pieces_in, pieces_of, texts
from gradcli.data.tabular.reader import MOST_WORDS
from gradcli.errors import DataError

PIECES = [
    *("a", "1", "2.5", "1e3", "NA", "", "", " ", "_", "é", "\U0001f600", "nan"),
    *(",",) * 12,
    *("\n",) * 5,
    *("\r\n", "\r", "\n\n", '"', '"', '""', '"a,b"', '"x\ny"', '"x""y"', 'a"b', "\0", ";"),
]


def random_text(rng: random.Random) -> str:
    """A table that is right, or nearly so, or nothing of the kind."""
    width = rng.randrange(1, 4)
    if rng.random() < 0.2:
        return "".join(rng.choices(PIECES, k=rng.randrange(40)))
    cells = [piece for piece in PIECES if not set(piece) & set(',\n\r\0;"')]
    quoted = ["1", "a", '"a,b"', '"x\ny"', '"x""y"', '""', '"\r\n"']
    ends = rng.choice((["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r"]))
    kinds = cells if rng.random() < 0.5 else [*cells, *quoted]
    rows = [",".join(rng.choices(kinds, k=width)) for _ in range(rng.randrange(1, 12))]
    text = "".join(row + rng.choice(ends) for row in rows)
    if rng.random() < 0.4:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(PIECES) + text[at + rng.randrange(2) :]
    return text[:-1] if rng.random() < 0.2 else text


def cut_up(text: str, rng: random.Random) -> Iterator[str]:
    while text:
        size = rng.choice((1, 3, 10, 100))
        yield text[:size]
        text = text[size:]


def by_blocks(pieces: Iterator[str]) -> tuple[list[list[str]], str]:
    """The rows of a reader that is asked for all columns, and what it refuses."""
    rows: list[list[str]] = []
    try:
        reader = CsvReader(pieces, "f")
        rows.append(list(reader.header))
        places = list(range(len(reader.header)))
        for count, cells in reader._cells(places):
            assert {count} == {len(column) for column in cells}
            rows += map(list, zip(*cells, strict=True))
    except DataError as error:
        return rows, error.message
    return rows, ""


def exactly(text: str) -> tuple[list[list[str]], str]:
    rows: list[list[str]] = []
    try:
        parser = ExactRows("f", ",")
        while text:
            more, position = parser.parse(text, final=True)
            rows += more
            text = text[position:]
    except DataError as error:
        return rows, error.message
    return rows, "" if rows else "f: the table is empty: no header and no rows"


def test_random_texts_have_the_rows_and_the_mistakes_of_the_exact_parser() -> None:
    accepted = 0
    for number in range(4000):
        rng = random.Random(number)
        text = random_text(rng)
        expected = exactly(text)
        accepted += not expected[1]
        assert by_blocks(cut_up(text, rng)) == expected, (number, text)
        assert by_blocks(iter([text])) == expected, (number, text)
    assert 1000 < accepted < 3500


def test_rows_are_those_of_the_parser_of_whole_texts() -> None:
    for number in range(300):
        text = random_text(random.Random(number))
        rows, refusal = exactly(text)
        if refusal:
            continue
        assert parse_rows(text.encode(), "f") == rows


@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
def test_long_cells_are_read_up_to_the_limit(quote: str) -> None:
    cell = "x" * (1 << 20)
    good = f"a,b\n1,{quote}{cell}{quote}\n2,y\n"
    assert by_blocks(iter([good]))[0][1:] == [["1", cell], ["2", "y"]]
    bad = good.replace(cell, cell + "x")
    expected = "f: row 2, column 2: a cell of more than 1048576 characters"
    assert by_blocks(iter([bad]))[1] == expected
    assert by_blocks(cut_up(bad, random.Random(1)))[1] == expected


CELLS = [
    *("1", "-1", "+1.5", ".5", "2.", "1e3", "1E-400", "1e39", "3.4e38", "3.3e38", "-3.4e38"),
    *("1_0", "inf", "-Infinity", "nan", "NaN", "NA", "", " ", " 7 ", "\t7", "7\u00a0", "0x10"),
    *("7\n", "12345678901234567890.5", "0.1234567890123456", "1e-30"),
    *(
        "1 2",
        "\u0661",
        "\u00b2",
        "--1",
        "e5",
        ".",
        "1e",
        "1.5.2",
        "nan ",
        " NA",
        "\u0661\u0662.\u0665",
        "1e5_0",
    ),
]


@pytest.mark.parametrize("few", [0, 256], ids=["in C", "one by one"])
def test_numbers_of_many_cells_are_those_of_each(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "_FEW", few)
    for number in range(3000):
        rng = random.Random(number)
        kinds = rng.sample(CELLS, rng.randrange(1, 6))
        cells = rng.choices(kinds, k=rng.randrange(12))
        column = numbers_of(cells)
        expected = [number_of(cell) for cell in cells]
        assert list(map(repr, column.values)) == list(map(repr, expected)), cells
        odd = {i: cells[i] for i, value in enumerate(expected) if math.isnan(value)}
        assert column.odd == odd, cells


def reader_of(text: str, size: int = 50) -> CsvReader:
    return CsvReader((text[i : i + size] for i in range(0, len(text), size)), "f")


def test_a_column_that_may_be_either_is_both_until_it_is_no_longer() -> None:
    rows = [f"{i},{i % 3},w{i % 3},{i if i < 500 else 'x'}" for i in range(1000)]
    reader = reader_of("n,s,w,t\n" + "\n".join(rows) + "\n")
    blocks = list(reader.blocks(dict.fromkeys("nswt", "any")))
    assert sum(block.count for block in blocks) == 1000
    last = blocks[-1]
    assert (set(last.numbers), set(last.words)) == ({"n", "s"}, {"n", "s", "w", "t"})
    assert last.words["w"].table == ["w0", "w1", "w2"]
    assert "t" in blocks[0].numbers


def test_words_without_end_are_no_longer_counted() -> None:
    text = "n\n" + "\n".join(map(str, range(MOST_WORDS + 10)))
    blocks = list(reader_of(text, 1 << 16).blocks({"n": "any"}))
    assert set(blocks[-1].numbers) == {"n"}
    assert not blocks[-1].words
    *_, block = reader_of(text, 1 << 20).blocks({"n": "word"})
    assert len(block.words["n"].table) == MOST_WORDS + 10


@pytest.mark.parametrize("packing", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_pieces_are_the_content_of_a_file(tmp_path: Path, packing: object) -> None:
    content = "\ufeffä,b\n".encode() + b"".join(b"%d,x\n" % i for i in range(300_000))
    path = tmp_path / "table"
    path.write_bytes(packing(content))  # type: ignore[operator]
    assert b"".join(pieces_of(path)) == content
    assert b"".join(pieces_in(load(path))) == content
    assert "".join(texts(pieces_of(path), "f")) == content.decode("utf-8-sig")


def packed_twice(content: bytes) -> bytes:
    return gzip.compress(content) + gzip.compress(content)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"a,b\n" * 9)[:-3], "gzip data ends early, at byte"),
        (gzip.compress(b"a\n") + b"junk", "4 bytes after the gzip data end at byte"),
        (gzip.compress(bytes(50 << 20)), "unpack to more than 4 MiB and to more than 200 times"),
        (gzip.compress(b"a\n" * 99)[:-8] + bytes(8), "its CRC does not match the content"),
    ],
    ids=["short", "longer", "bomb", "damaged"],
)
def test_a_packed_file_is_refused_like_one_in_memory(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "table"
    path.write_bytes(data)
    said = []
    for read in (lambda: b"".join(pieces_of(path)), lambda: load(path).unpacked()):
        with pytest.raises(DataError, match=message) as caught:
            read()
        said.append(caught.value.message)
    assert said[0] == said[1]


def test_several_members_are_one_content(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(packed_twice(b"a\n"))
    assert b"".join(pieces_of(path)) == b"a\na\n"


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "bom"])
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_wrong_byte_has_its_line_and_offset(mark: bytes, size: int) -> None:
    content = mark + "ä,b\n1,".encode() + b"\xff\n"
    with pytest.raises(DataError) as whole:
        parse_rows(content, "f")
    stream = io.BytesIO(content)
    found = []
    with pytest.raises(DataError) as caught:
        found += texts(iter(lambda: stream.read(size), b""), "f")
    assert caught.value.message == whole.value.message
    assert caught.value.message.endswith(
        f"f:2: not UTF-8 text: byte 0xff at byte offset {content.index(0xFF)}"
    )


def test_missing_cells_are_those_that_were_missing() -> None:
    assert [is_missing(cell, allowed=True) for cell in ("", " NA ", "NaN", "x")] == [1, 1, 1, 0]
    assert [is_missing(cell, allowed=False) for cell in ("", "NA", "nan", "x")] == [1, 1, 0, 0]
