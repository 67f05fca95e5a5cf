"""Datasets of each kind that is read in more than one way, with a config that trains on them.

As a script, for other processes: `same_data.py make KIND`, or `same_data.py memory|files ...` for
gradcli's own command line, as ever or where nothing counts as small.
"""

from __future__ import annotations

import random
import sys
import zipfile
from array import array
from pathlib import Path
from typing import Any

import pytest

from gradcli.cli.main import run
from gradcli.data import csv, files, image_files, long_text, text
from gradcli.data.bpe import source as bpe_source
from gradcli.data.tabular import opening

HEAD = "gradcli: 1\nname: it\nloss: cross_entropy\noptim: {name: adam, lr: 0.01}\n"
MODELS = {
    "pictures": """\
data: {name: image_folder, dir: pets, size: 6, cache: kept, split: {train: 80%, val: 20%}}
model: [flatten, linear: 8, relu, linear: $data.classes]
train: {epochs: 3, batch: 4, micro_batch: 1}
""",
    "characters": """\
data: {name: text, file: story.txt, context: 8, cache: kept}
model: [embed: 8, lstm: 8, linear: $data.vocab]
train: {steps: 12, batch: 4, micro_batch: 1}
""",
    "archive": """\
data: {name: npz, file: data.npz, inputs: x, targets: y, cache: kept, split: {train: 80%, val: 20%}}
model: [linear: 8, relu, linear: $data.classes]
train: {epochs: 3, batch: 4, micro_batch: 1}
""",
    "arrays": """\
data: {name: npy, inputs: x.npy, targets: y.npy, split: {train: 80%, val: 20%}, size: 8}
model: [conv: {out: 3, kernel: 3}, relu, flatten, dropout: 0.1, linear: $data.classes]
train: {steps: 12, batch: 4, micro_batch: 1}
""",
    "tokens": """\
data: {name: tokens, file: part*.bin, vocab: 300, context: 6, stride: 2}
model: [embed: 8, gru: 8, linear: $data.vocab]
train: {steps: 12, batch: 4, micro_batch: 1}
""",
    "table": """\
data: {name: csv, file: table.csv, target: kind, missing: mean, cache: kept}
model: [linear: 8, relu, linear: $data.classes]
train: {steps: 12, batch: 4, micro_batch: 1}
""",
    "series": """\
data: {name: csv, file: days*.csv, target: load, task: regression, window: 3, cache: kept}
model: [gru: {out: 8, last: true}, linear: 1]
train: {steps: 12, batch: 4, micro_batch: 1}
""",
}
MODELS["bpe"] = MODELS["characters"].replace(
    "context", "unit: bpe, tokenizer: {train: 260}, context"
)
MODELS["bytes"] = MODELS["characters"].replace("context", "unit: bytes, context")
TABLES = ("table", "series")
MAPPED = ("arrays", "tokens")  # where they lie; of the others prepared data is


def config(kind: str) -> str:
    """The text of the config."""
    return (HEAD if kind != "series" else HEAD.replace("cross_entropy", "mse")) + MODELS[kind]


def _pictures() -> None:
    image = pytest.importorskip("PIL.Image")
    draw = random.Random(1)
    for number in range(30):
        path = Path("pets", ("cat", "dog")[number % 2], f"{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        image.frombytes("RGB", (8, 7), draw.randbytes(168)).save(path)


def _story() -> None:
    draw = random.Random(2)
    Path("story.txt").write_text("".join(draw.choice("abcdeé \n") for _ in range(2000)))


def npy(kind: str, shape: tuple[int, ...], numbers: array[Any]) -> bytes:
    """What numpy.save writes."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (117 - len(text)) + "\n"
    head = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little")
    return head + text.encode() + numbers.tobytes()


def _archive() -> None:
    draw = random.Random(1)
    with zipfile.ZipFile("data.npz", "w") as file:
        inputs = array("d", (draw.random() for _ in range(150)))
        file.writestr("x.npy", npy("<f8", (30, 5), inputs))
        file.writestr("y.npy", npy("<i8", (30,), array("q", (row % 3 for row in range(30)))))


def _arrays() -> None:
    draw = random.Random(3)
    pixels: array[int] = array("B", draw.randbytes(60 * 20))
    Path("x.npy").write_bytes(npy("|u1", (60, 1, 4, 5), pixels))
    labels = array("q", (draw.randrange(3) for _ in range(60)))
    Path("y.npy").write_bytes(npy("<i8", (60,), labels))


def _tokens() -> None:
    draw = random.Random(4)
    for name in "abc":
        tokens = (min(299, int(draw.expovariate(0.02))) for _ in range(90))
        Path(f"part{name}.bin").write_bytes(b"".join(t.to_bytes(2, "little") for t in tokens))


def _table() -> None:
    draw = random.Random(5)
    lines = ["size,weight,colour,name,kind"]
    for row in range(90):
        weight = "" if row % 9 == 4 else f"{draw.gauss(3, 2):.4f}"
        colour, kind = draw.choice(["red", "green", '"blue, pale"']), draw.choice("abc")
        lines.append(
            f"{draw.random() * 10 ** draw.randrange(-3, 4):.6g},{weight},{colour},n{row},{kind}"
        )
    Path("table.csv").write_text("\n".join(lines) + "\n")


def _series() -> None:
    draw = random.Random(6)
    for day in range(4):
        rows = [f"{draw.gauss(10, 4):.3f},{draw.random():.5f}" for _ in range(12 + 9 * day)]
        Path(f"days{day}.csv").write_text("\n".join(["temp,load", *rows]) + "\n")


MAKERS = {
    "pictures": _pictures,
    "characters": _story,
    "bytes": _story,
    "bpe": _story,
    "archive": _archive,
    "arrays": _arrays,
    "tokens": _tokens,
    "table": _table,
    "series": _series,
}


def make(kind: str) -> None:
    """The data and `it.yaml` in the current folder."""
    MAKERS[kind]()
    Path("it.yaml").write_text(config(kind))


def shrink(patch: pytest.MonkeyPatch) -> None:
    """What is small otherwise is prepared, or mapped."""
    patch.setattr(image_files, "SMALL_FILES", 4)
    patch.setattr(files, "LARGE", 100)
    patch.setattr(text, "SMALL_GZIP", -1)
    patch.setattr(text, "SMALL", -1)
    patch.setattr(long_text, "_PORTION", 100)
    patch.setattr(long_text, "_BLOCK_TOKENS", 300)
    patch.setattr(bpe_source, "SMALL", -1)
    patch.setattr(csv, "small", lambda *paths: False)


def without_pyarrow(patch: pytest.MonkeyPatch) -> None:
    """Tables are read by Python's own csv module."""
    patch.setattr(opening, "find_spec", lambda name: None)


def main() -> int:
    if sys.argv[1] == "make":
        make(sys.argv[2])
        return 0
    if sys.argv[1] == "files":
        shrink(pytest.MonkeyPatch())
    return run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
