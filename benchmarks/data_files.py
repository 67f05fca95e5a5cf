"""The data of the race of readers: written into a folder, each with a config beside it.

A process of its own, so that what writing takes is no memory of the race:
`python -m benchmarks.data_files FOLDER CASE SIZE`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STEPS = 10
TRAINING = f"train: {{steps: {STEPS}, batch: 100, log_every: {STEPS}}}\n"
VALUES = f"model: [linear: 1]\nloss: mse\noptim: {{name: sgd, lr: 0.001}}\n{TRAINING}"
CLASSES = f"loss: cross_entropy\noptim: {{name: sgd, lr: 0.001}}\n{TRAINING}"
COLUMNS = 10
TABLE = (
    "gradcli: 1\ndata: {name: csv, file: table.csv, target: y, task: regression, "
    f"numeric: [{', '.join(f'x{i}' for i in range(COLUMNS - 1))}], split: {{train: 100%}}}}\n"
    f"{VALUES}"
)
SIDE = 28


@dataclass(frozen=True)
class Case:
    """One kind of data.

    Attributes:
        title: with `{}` for the size: rows, samples, bytes or pictures.
        needs: the package that writes it; it reads it too, as the peer.
        bytes_each: of one of them on the disk, about.
    """

    title: str
    size: int
    quick: int
    bytes_each: float
    needs: str
    config: str
    write: Callable[[Path, int], None]


def _table(folder: Path, rows: int) -> None:
    import numpy

    draw = numpy.random.default_rng(1)
    with (folder / "table.csv").open("w") as file:
        file.write(",".join([f"x{i}" for i in range(COLUMNS - 1)] + ["y"]) + "\n")
        for first in range(0, rows, 50_000):
            block = draw.normal(size=(min(50_000, rows - first), COLUMNS))
            numpy.savetxt(file, block, fmt="%.5f", delimiter=",")


def _arrays(folder: Path, samples: int) -> None:
    import numpy

    draw, shape = numpy.random.default_rng(1), (samples, SIDE * SIDE)
    array = numpy.lib.format.open_memmap(folder / "x.npy", "w+", numpy.float32, shape)
    for first in range(0, samples, 10_000):
        last = min(first + 10_000, samples)
        array[first:last] = draw.random((last - first, SIDE * SIDE), numpy.float32)
    array.flush()
    numpy.save(folder / "y.npy", numpy.arange(samples) % 10)


def _text(folder: Path, length: int) -> None:
    import numpy

    letters = numpy.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz ,.\n", numpy.uint8)
    draw = numpy.random.default_rng(1)
    with (folder / "story.txt").open("wb") as file:
        for first in range(0, length, 1 << 22):
            count = min(1 << 22, length - first)
            file.write(letters[draw.integers(0, len(letters), count)].tobytes())


def _words(folder: Path, length: int) -> None:
    """Lines of words as frequent as those of a language, and a tokenizer trained on the first."""
    import numpy
    from tokenizers import ByteLevelBPETokenizer

    draw = numpy.random.default_rng(1)
    letters = numpy.array(list("eeetttaaooiinnsshhrrddluucmfwypvbgkjqxz"))
    words = ["".join(draw.choice(letters, size)) for size in draw.poisson(5, 50_000) + 1]
    chances = 1 / numpy.arange(10, len(words) + 10)
    chances /= chances.sum()
    total = 0
    with (folder / "words.txt").open("w") as file:
        while total < length:
            numbers = draw.choice(len(words), 100_000, p=chances)
            lines = (numbers[i : i + 12] for i in range(0, len(numbers), 12))
            text = "".join(" ".join(words[n] for n in line) + ".\n" for line in lines)
            total += file.write(text[: length - total])
    with (folder / "words.txt").open() as file:
        first = file.read(4_000_000)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([first], 8192, show_progress=False)
    tokenizer.save(str(folder / "tokenizer.json"))


def _pictures(folder: Path, count: int) -> None:
    import numpy
    from PIL import Image

    draw = numpy.random.default_rng(1)
    for number in range(count):
        coarse = draw.integers(0, 256, (8, 10, 3), numpy.uint8)
        kind = folder / "pictures" / ("ab"[number % 2])
        kind.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(coarse).resize((320, 240), Image.Resampling.BICUBIC)
        picture.save(kind / f"{number:06}.jpg", quality=90)


CASES = {
    "csv 200k": Case("CSV, {} rows", 200_000, 200, 83, "pandas", TABLE, _table),
    "csv 1M": Case("CSV, {} rows", 1_000_000, 400, 83, "pandas", TABLE, _table),
    "npy": Case(
        ".npy, {} samples of 784 numbers",
        *(500_000, 1000, 4.0 * SIDE * SIDE, "numpy"),
        "gradcli: 1\ndata: {name: npy, inputs: x.npy, targets: y.npy}\n"
        f"model: [linear: $data.classes]\n{CLASSES}",
        _arrays,
    ),
    "text": Case(
        "text, {} characters",
        *(100_000_000, 20_000, 1, "numpy"),
        "gradcli: 1\ndata: {name: text, file: story.txt, context: 32, split: {train: 100%}}\n"
        "model: [embed: 8, linear: $data.vocab]\n" + CLASSES,
        _text,
    ),
    "bpe": Case(
        "text, {} characters as tokens",
        *(100_000_000, 1_200_000, 1, "tokenizers"),
        "gradcli: 1\ndata: {name: text, file: words.txt, unit: bpe, tokenizer: tokenizer.json, "
        "context: 32, split: {train: 100%}}\n"
        # Of 8,192 tokens a large batch would be all that a start takes.
        "model: [embed: 8, linear: $data.vocab]\n" + CLASSES.replace("batch: 100", "batch: 4"),
        _words,
    ),
    "pictures": Case(
        "{} JPEG files of 320 x 240",
        *(4000, 30, 9000, "PIL"),
        "gradcli: 1\ndata: {name: image_folder, dir: pictures, size: 64}\n"
        f"model: [flatten, linear: $data.classes]\n{CLASSES}",
        _pictures,
    ),
}
# Not raced: a small convolution over many pictures, to see how long its steps wait for them.
WAITING = "pictures 10k"
WAITING_CASE = Case(
    "{} JPEG files under a convolution",
    *(10_000, 30, 9000, "PIL"),
    "gradcli: 1\ndata: {name: image_folder, dir: pictures, size: 64}\n"
    "model: [conv: {out: 16, kernel: 3}, relu, max_pool: 2, flatten, linear: $data.classes]\n"
    "loss: cross_entropy\noptim: {name: sgd, lr: 0.001}\ntrain: {steps: 50, batch: 100}\n",
    _pictures,
)
SMALL = "start"  # a table of a few rows: what a start takes that has nothing to read
SMALL_CASE = Case("start on {} rows", 100, 100, 83, "numpy", TABLE, _table)


def write(folder: Path, name: str, size: int) -> None:
    """The data of a case, and its config."""
    case = {**CASES, SMALL: SMALL_CASE, WAITING: WAITING_CASE}[name]
    folder.mkdir(parents=True)
    case.write(folder, size)
    (folder / "config.yaml").write_text(case.config)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
