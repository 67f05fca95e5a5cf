"""Both readers of CSV: the same numbers to the bit, the same words and the same sentences."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from table_answers import answer, pieces

from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.pieces import texts
from gradcli.data.tabular.reader import Role, TableReader

csv_reader = pytest.importorskip("gradcli.data.arrow.csv_reader", reason="needs the extra 'tables'")
row_blocks = pytest.importorskip("gradcli.data.arrow.row_blocks", reason="needs the extra 'tables'")

CELLS = (
    "1", "-2.5", "+3", "1e5", "1E-3", ".5", "5.", "007", "-0", "0.1", "1e400", "-1e400", "1e-400",
    "3.4e38", "3.3e38", "9007199254740993", "123456789.123456789", "5e-324", "2e-324", "1_000",
    "0x10", "inf", "-Infinity", "nan", "NaN", "NAN", "NA", "na", "N/A", "null", "", " ", " NA ",
    " nan", "\t7", "8 ", "\xa09", "\u0661\u0662", "\u20031", "\x1f1", "1\x85", "a", "b", "Ä", "é",
    "\U0001f600", "a b", "true", "False", "$1,234.50", "12 %", "--1", "1e", "e5", "1 2", "1.2.3",
    "nan(1)", "2024-01-01", "x;y", "#", "'", "\\", "\u2028", "\x0b", "\x0c",
)  # fmt: skip
QUOTED = ("a,b", 'a"b', "line\nbreak", "a\r\nb", '"', ",", "\n", "", "NA", "1.5", " 2", "\r", "nan")
ODD = (b'"', b'""', b"\0", b"\xff", b"\r", b"\n", b"\n\n", b",", b"\r\n\r\n", b"\xef\xbb\xbf", b" ")
ROLES: Mapping[str, Role] = {"n": "number", "w": "word", "o": "any"}


def table(rng: random.Random) -> bytes:
    """Rows that are mostly right, each column of cells that are mostly of one kind."""
    stop = rng.choice(("\n", "\r\n", "\r", "\n"))
    header = rng.choice(("n,w,o", "unused,o,w,n", '"n",w,"o"', "n,n,w,o", "n,w,o,Ä"))
    width = header.count(",") + 1
    likely = [rng.sample(CELLS, rng.choice((1, 3, 12))) for _ in range(width)]
    if rng.random() < 0.5:
        likely = [["1", "-2.5", "0.1", rng.choice(CELLS)] for _ in range(width)]
    quotes = rng.choice((0, 0, 0.2))
    rows = [
        ",".join(_cell(cells, quotes, rng) for cells in likely) for _ in range(rng.randint(0, 30))
    ]
    text = stop.join([header, *rows]) + stop * rng.choice((0, 1, 1, 2, 3))
    data = bytearray(rng.choice(("", "", "\ufeff", stop)).encode() + text.encode())
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.choice(ODD)
    return bytes(data)


def _cell(likely: list[str], quotes: float, rng: random.Random) -> str:
    if rng.random() < quotes:
        return '"' + rng.choice(QUOTED).replace('"', '""') + '"'
    cell = rng.choice(CELLS if rng.random() < 0.02 else likely)
    return f'"{cell}"' if "," in cell else cell


def base(again: Callable[[], Iterator[bytes]]) -> TableReader:
    return CsvReader(texts(again(), "t"), "t")


def by_arrow(again: Callable[[], Iterator[bytes]]) -> TableReader:
    reader: TableReader = csv_reader.ArrowCsvReader(again(), again, "t")
    return reader


@pytest.mark.parametrize("part", range(8))
def test_both_readers_say_the_same_of_random_tables(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(part)
    for _ in range(150):
        data = table(rng)
        monkeypatch.setattr(row_blocks, "BLOCK", rng.choice((16, 64, 1 << 20)))
        size = rng.choice((7, 50, 1 << 20))
        again = partial(pieces, data, size)
        ours = answer(partial(base, again), ROLES)
        assert answer(partial(by_arrow, again), ROLES) == ours, data


@pytest.mark.parametrize("cells", ["1,a,2", ",a,", "x,a,y", ",,", "1e39,a,1e39", "NA,NA,NA"])
@pytest.mark.parametrize("before", [0, 1, 40])
@pytest.mark.parametrize("line", ["", "\r", '""'])
def test_both_readers_say_the_same_of_a_line_without_cells(
    cells: str, before: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    rows = [cells] * before + [line] + [cells] * 9
    data = "\n".join(["n,w,o", *rows, ""]).encode()
    for roles in (ROLES, {"n": "number"}, {"w": "word"}):
        again = partial(pieces, data, 50)
        ours = answer(partial(base, again), roles)
        assert answer(partial(by_arrow, again), roles) == ours


# Without possessive groups, which Python 3.11.0 to 3.11.4 get wrong.
BREAK, CELL = rb"(?:\r\n|\n|\r(?!\n))(?![\r\n])", rb'(?<![^,\r\n])"(?:[^"]|"")*"(?=[,\r\n]|\Z)'
PLAIN = re.compile(rb'(?:[^"\r\n]|%s|%s)*' % (BREAK, CELL))


def test_arrow_reads_only_quotes_around_whole_cells() -> None:
    rng, blocks = random.Random(0), row_blocks.RowBlocks(iter([b"a,b\n"]), ",")
    for _ in range(20_000):
        block = bytes(rng.choice(b'a,"""\r\n') for _ in range(rng.randint(1, 14)))
        plain = PLAIN.fullmatch(block) is not None
        looked_at = b'"' in block or b"\r" in block
        assert blocks._plain(block) == (plain or not looked_at), block
