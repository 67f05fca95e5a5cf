"""Small data of each kind in the current folder, with a config: `data` and, alike, `new`."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

numpy: Any = pytest.importorskip("numpy", reason="of the extra 'parity'")

TRAIN = "optim: {name: adam, lr: 0.01}\ntrain: {epochs: 1, batch: 8, log_every: 100}\n"


def idx(numbers: Any) -> bytes:
    shape = b"".join(size.to_bytes(4, "big") for size in numbers.shape)
    return bytes([0, 0, 8, numbers.ndim]) + shape + numbers.tobytes()


def write_mnist(folder: Path, draw: Any) -> None:
    folder.mkdir(parents=True)
    for name, count in (("train", 40), ("t10k", 16)):
        pixels = draw.integers(0, 256, (count, 28, 28), dtype=numpy.uint8)
        labels = numpy.arange(count, dtype=numpy.uint8) % 10
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels))


def write_rows(path: Path, count: int, seed: int) -> None:
    """Numbers with gaps, categories, a class and a price."""
    draw = random.Random(seed)
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["area", "rooms", "city", "kind", "price"])
    for i in range(count):
        area = draw.uniform(20, 200)
        city = ["Rome", "Oslo", "Bonn"][i % 3]
        gap = "" if i % 7 == 3 else f"{area:.2f}"
        rows.writerow([gap, i % 5, city, "big" if area > 90 else "small", round(area * 3000)])
    path.write_text(text.getvalue())


def write_pictures(folder: Path, draw: Any) -> None:
    image = pytest.importorskip("PIL.Image", reason="image_folder needs the extra `images`")
    for name, low in (("dark", 0), ("light", 120)):
        (folder / name).mkdir(parents=True)
        for i in range(8):
            pixels = draw.integers(low, low + 120, (9, 11, 3), dtype=numpy.uint8)
            image.fromarray(pixels).save(folder / name / f"{i}.png")


def write_arrays(path: Path, draw: Any, count: int) -> None:
    x = draw.normal(2.0, 3.0, (count, 5)).astype(numpy.float32)
    numpy.savez(path, x=x, y=(x[:, 0] > 2).astype(numpy.int64))


def npy() -> str:
    Path("data").mkdir()
    Path("new").mkdir()
    for folder, seed in (("data", 1), ("new", 2)):
        draw = numpy.random.default_rng(seed)
        numpy.save(f"{folder}/x.npy", draw.integers(0, 256, (24, 6, 6), dtype=numpy.uint8))
        numpy.save(f"{folder}/y.npy", draw.normal(0, 1, (24, 2)).astype(numpy.float32))
    return (
        "data: {name: npy, inputs: data/x.npy, targets: data/y.npy}\nmodel: [flatten, linear: 2]\n"
    )


def cifar10() -> str:
    for folder, seed in (("data", 1), ("new", 2)):
        Path(folder).mkdir()
        draw = numpy.random.default_rng(seed)
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            rows = draw.integers(0, 256, (4, 3073), dtype=numpy.uint8)
            rows[:, 0] %= 10
            Path(folder, f"{name}.bin").write_bytes(rows.tobytes())
    return "data: {name: cifar10, dir: data, normalize: true}\nmodel: [flatten, linear: 10]\n"


def mnist() -> str:
    write_mnist(Path("data/mnist"), numpy.random.default_rng(1))
    write_mnist(Path("new"), numpy.random.default_rng(2))
    return (
        "data: {name: mnist, dir: data/mnist, normalize: true, size: 32}\n"
        "model: [flatten, linear: 10]\n"
    )


def image_folder() -> str:
    write_pictures(Path("data/pictures"), numpy.random.default_rng(1))
    write_pictures(Path("new"), numpy.random.default_rng(2))
    return (
        "data: {name: image_folder, dir: data/pictures, size: 8, normalize: true}\n"
        "model: [flatten, linear: $data.classes]\n"
    )


def npz() -> str:
    Path("data").mkdir()
    Path("new").mkdir()
    write_arrays(Path("data/a.npz"), numpy.random.default_rng(1), 40)
    write_arrays(Path("new/a.npz"), numpy.random.default_rng(2), 12)
    return (
        "data: {name: npz, file: data/a.npz, inputs: x, targets: y, mean: 2, std: 3}\n"
        "model: [linear: $data.classes]\n"
    )


def table(target: str) -> str:
    Path("data").mkdir()
    Path("new").mkdir()
    write_rows(Path("data/rows.csv"), 60, 1)
    write_rows(Path("new/rows.csv"), 20, 2)
    return (
        f"data: {{name: csv, file: data/rows.csv, {target}, numeric: [area, rooms], "
        "split: {train: 100%}, "
        "category: [city], missing: mean}\n"
    )


def classes() -> str:
    return table("target: kind") + "model: [linear: $data.classes]\n"


def values() -> str:
    return table("target: price, task: regression") + "model: [linear: 1]\n"


def text() -> str:
    Path("data").mkdir()
    Path("new").mkdir()
    Path("data/words.txt").write_text("the cat sat on the mat\n" * 40)
    Path("new/words.txt").write_text("that mat is the cat\n".replace("is", "sat") * 5)
    return (
        "data: {name: text, file: data/words.txt, context: 8, split: {train: 100%}}\n"
        "model: [embed: 8, linear: $data.vocab]\n"
    )


@dataclass(frozen=True)
class Case:
    """One kind of data.

    Attributes:
        write: makes the files, gives the `data:` and `model:` of a config.
        files: new ones to predict.
        labelled: new data with targets.
        trained: the training data as such.
        split: of the training data, which `trained` holds.
        loss: for the config.
    """

    write: Callable[[], str]
    files: tuple[str, ...]
    labelled: str
    trained: str
    split: str = "train"
    loss: str = "cross_entropy"

    def config(self) -> str:
        """A whole config; the files are written."""
        return f"gradcli: 1\nname: moved\n{self.write()}loss: {self.loss}\n{TRAIN}"


CASES = {
    "mnist": Case(mnist, ("new/t10k-images-idx3-ubyte.gz",), "new", "data/mnist", "test"),
    "cifar10": Case(
        cifar10, ("new/test_batch.bin",), "new/test_batch.bin", "data/test_batch.bin", "test"
    ),
    "image_folder": Case(
        image_folder, ("new/dark/0.png", "new/light/3.png"), "new", "data/pictures"
    ),
    "npy": Case(npy, ("new/x.npy",), "new", "data", loss="mse"),
    "npz": Case(npz, ("new/a.npz",), "new/a.npz", "data/a.npz"),
    "csv, classes": Case(classes, ("new/rows.csv",), "new/rows.csv", "data/rows.csv"),
    "csv, values": Case(values, ("new/rows.csv",), "new/rows.csv", "data/rows.csv", loss="mse"),
    "text": Case(text, ("new/words.txt",), "new/words.txt", "data/words.txt"),
}
