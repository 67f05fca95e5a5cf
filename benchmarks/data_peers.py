"""How another library reads the same data: `python -m benchmarks.data_peers CASE FOLDER`.

Prints the seconds of reading alone: its own import does not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.data_files import STEPS

BATCH = 100


def _table(folder: Path) -> Callable[[], object]:
    import pandas

    return lambda: pandas.read_csv(folder / "table.csv")


def _arrays(folder: Path) -> Callable[[], object]:
    import numpy

    def read() -> None:
        x = numpy.load(folder / "x.npy", mmap_mode="r")
        y = numpy.load(folder / "y.npy", mmap_mode="r")
        draw = numpy.random.default_rng(1)
        for _ in range(STEPS):
            rows = draw.integers(0, len(x), BATCH)
            x[rows].sum(), y[rows].sum()

    return read


def _text(folder: Path) -> Callable[[], object]:
    """Tokens by NumPy: one look for the characters there are, one table look-up."""
    import numpy

    def read() -> None:
        text = numpy.fromfile(folder / "story.txt", numpy.uint8)
        there = numpy.flatnonzero(numpy.bincount(text, minlength=256))
        table = numpy.zeros(256, numpy.uint8)
        table[there] = numpy.arange(len(there))
        table[text]

    return read


def _tokens(folder: Path) -> Callable[[], object]:
    """The library alone, by the pieces that it is fastest on, cut anywhere; on all cores."""
    import numpy
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    piece, batch = 1 << 16, 1 << 22

    def read() -> None:
        with (folder / "words.txt").open() as text, (folder / "tokens.bin").open("wb") as file:
            while some := text.read(batch):
                pieces = [some[i : i + piece] for i in range(0, len(some), piece)]
                for encoding in tokenizer.encode_batch_fast(pieces, add_special_tokens=False):
                    numpy.array(encoding.ids, numpy.uint16).tofile(file)

    return read


def _pictures(folder: Path) -> Callable[[], object]:
    """Pillow alone, one picture after the other: decoded, the shorter side 64, the middle."""
    from PIL import Image

    def read() -> None:
        for file in sorted((folder / "pictures").rglob("*.jpg")):
            with Image.open(file) as picture:
                scale = 64 / min(picture.size)
                size = tuple(max(64, round(scale * side)) for side in picture.size)
                small = picture.convert("RGB").resize(size, Image.Resampling.BILINEAR)
                x, y = (size[0] - 64) // 2, (size[1] - 64) // 2
                small.crop((x, y, x + 64, y + 64)).tobytes()

    return read


READERS = {
    "csv 200k": _table,
    "csv 1M": _table,
    "npy": _arrays,
    "text": _text,
    "bpe": _tokens,
    "pictures": _pictures,
}
TITLES = {
    "csv 200k": "pandas.read_csv",
    "csv 1M": "pandas.read_csv",
    "npy": "numpy.load(mmap_mode), 10 batches",
    "text": "NumPy, a table of bytes",
    "bpe": "tokenizers, by pieces",
    "pictures": "Pillow, one after another",
}

if __name__ == "__main__":
    reading = READERS[sys.argv[1]](Path(sys.argv[2]))
    began = time.perf_counter()
    reading()
    print(time.perf_counter() - began)
