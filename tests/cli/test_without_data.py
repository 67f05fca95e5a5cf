"""A model leaves its data: the run copied to another folder, its data gone, answers as before."""

from __future__ import annotations

import csv
import gzip
import io
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from points import Ended, gradcli

__all__ = ["gradcli"]

Command = Callable[..., Ended]
HEAD = "gradcli: 1\nname: moved\n"
TRAIN = "optim: {name: adam, lr: 0.01}\ntrain: {epochs: 1, batch: 8, log_every: 100}\n"


def idx(numbers: numpy.ndarray) -> bytes:
    shape = b"".join(size.to_bytes(4, "big") for size in numbers.shape)
    return bytes([0, 0, 8, numbers.ndim]) + shape + numbers.tobytes()


def write_mnist(folder: Path, draw: numpy.random.Generator) -> None:
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


def write_pictures(folder: Path, draw: numpy.random.Generator) -> None:
    image = pytest.importorskip("PIL.Image", reason="image_folder needs the extra `images`")
    for name, low in (("dark", 0), ("light", 120)):
        (folder / name).mkdir(parents=True)
        for i in range(8):
            pixels = draw.integers(low, low + 120, (9, 11, 3), dtype=numpy.uint8)
            image.fromarray(pixels).save(folder / name / f"{i}.png")


def write_arrays(path: Path, draw: numpy.random.Generator, count: int) -> None:
    x = draw.normal(2.0, 3.0, (count, 5)).astype(numpy.float32)
    numpy.savez(path, x=x, y=(x[:, 0] > 2).astype(numpy.int64))


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
        "data: {name: text, file: data/words.txt, context: 8}\n"
        "model: [embed: 8, linear: $data.vocab]\n"
    )


CASES: dict[str, tuple[Callable[[], str], list[str]]] = {
    "mnist": (mnist, ["new/t10k-images-idx3-ubyte.gz"]),
    "image_folder": (image_folder, ["new/dark/0.png", "new/light/3.png"]),
    "npz": (npz, ["new/a.npz"]),
    "csv, classes": (classes, ["new/rows.csv"]),
    "csv, values": (values, ["new/rows.csv"]),
    "text": (text, ["new/words.txt"]),
}
ALL = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def run(gradcli: Command, case: str) -> Path:
    """A run of a few steps; its data lie in `data`, new data of the same kind in `new`."""
    write = CASES[case][0]
    loss = "mse" if case == "csv, values" else "cross_entropy"
    Path("moved.yaml").write_text(f"{HEAD}{write()}loss: {loss}\n{TRAIN}")
    ended = gradcli("train", "moved.yaml", "--json")
    assert ended.code == 0
    return Path(ended.json["run"])


def carry_off(run: Path) -> Path:
    """The run in another folder, and neither its first folder nor its data any more."""
    Path("elsewhere").mkdir()
    copy = Path("elsewhere/copy")
    shutil.copytree(run, copy)
    shutil.rmtree("runs")
    shutil.rmtree("data")
    return copy


@ALL
def test_predict_answers_as_before(gradcli: Command, run: Path, case: str) -> None:
    files = CASES[case][1]
    lines, as_json = (
        gradcli("predict", str(run), *files),
        gradcli("predict", "last", *files, "--json"),
    )
    assert lines.code == 0
    assert lines.out.count("\n") >= 2
    copy = carry_off(run)
    again = gradcli("predict", str(copy), *files)
    assert (again.code, again.out, again.err) == (0, lines.out, lines.err)
    found = gradcli("predict", str(copy), *files, "--json").json
    assert found["predictions"] == as_json.json["predictions"]


@pytest.mark.parametrize("case", ["text"])
def test_a_prompt_goes_on_as_before(gradcli: Command, run: Path, case: str) -> None:
    how = ("--prompt", "the c", "--tokens", "40")
    before = gradcli("predict", str(run), *how)
    after = gradcli("predict", str(carry_off(run)), *how)
    assert (before.code, after.code, after.out) == (0, 0, before.out)


@ALL
def test_eval_of_a_split_needs_the_data(gradcli: Command, run: Path, case: str) -> None:
    ended = gradcli("eval", str(carry_off(run)), "--split", "train")
    assert ended.code == 3
    assert "if the data has moved, write its new place into" in ended.err
