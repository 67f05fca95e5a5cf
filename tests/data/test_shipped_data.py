from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import pytest

from gradcli.data.csv import CsvSource
from gradcli.data.files import sums_in
from gradcli.data.idx import read_idx
from gradcli.data.mnist import MEAN, STD, Mnist
from gradcli.data.text import TextSource
from gradcli.errors import DataError

ROOT = Path(__file__).parents[2]
MNIST = ROOT / "datasets/mnist"
MD5 = {
    "train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte.gz": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte.gz": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte.gz": "27ae3e4e09519cfbb04c329615203637",
}


@pytest.mark.parametrize("name", ["mnist", "penguins", "shakespeare"])
def test_every_data_file_is_listed_with_its_hash(name: str) -> None:
    folder = ROOT / "datasets" / name
    files = {p.name for p in folder.iterdir() if p.suffix in (".gz", ".csv")}
    assert set(sums_in(folder).files) == files
    for file, digest in sums_in(folder).files.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", sorted(MD5))
def test_mnist_is_the_original(name: str) -> None:
    data = (MNIST / name).read_bytes()
    assert data[3:8] == bytes(5)  # no name, no time
    raw = hashlib.md5(gzip.decompress(data), usedforsecurity=False)
    assert raw.hexdigest() == MD5[name]


def test_mnist_facts() -> None:
    facts = Mnist(split={"train": 55000, "val": 5000}).locate(ROOT / "configs").facts()
    assert (facts.input, facts.classes, facts.target) == ((1, 28, 28), 10, ())
    assert facts.sizes == {"train": 55000, "val": 5000, "test": 10000}


def test_mnist_begins_with_5_0_4_1_9() -> None:
    labels, _ = read_idx(MNIST / "train-labels-idx1-ubyte.gz")
    assert (labels.header.shape, list(labels.numbers[:5])) == ((60000,), [5, 0, 4, 1, 9])


def test_mnist_loads_and_gives_batches() -> None:
    from gradcli import engine

    made = Mnist(split={"train": 55000, "val": 5000}).locate(ROOT).load()
    assert {name: split.size for name, split in made.splits.items()} == made.facts.sizes
    assert {Path(path).name for path in made.files.values()} == set(MD5)
    x, y = made.splits["train"].batch(engine.tensor([0, 1, 2, 3, 4]))
    assert y.tolist() == [5, 0, 4, 1, 9]
    assert x.shape == (5, 1, 28, 28)
    assert (float(x.min()), float(x.max())) == (0.0, 1.0)


def test_the_mean_and_deviation_of_mnist_are_what_we_say() -> None:
    data = gzip.decompress((MNIST / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    high, low = bytes(v * v >> 8 for v in range(256)), bytes(v * v & 255 for v in range(256))
    mean = total(data) / len(data) / 255
    square = (256 * total(data.translate(high)) + total(data.translate(low))) / len(data) / 255**2
    assert (round(mean, 4), round((square - mean**2) ** 0.5, 4)) == (MEAN, STD)


def total(data: bytes) -> int:
    """The sum of all bytes: the low half of Adler-32 is 1 + their sum, exact below 65521."""
    return sum((zlib.adler32(data[at : at + 256]) & 0xFFFF) - 1 for at in range(0, len(data), 256))


def test_mnist_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert Mnist().locate(tmp_path).dir == str(MNIST)


def test_mnist_that_is_nowhere_tells_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="MNIST files are not there") as caught:
        Mnist().locate(tmp_path / "sub")
    assert caught.value.code == "E301"
    assert f"looked in: {tmp_path / 'sub/datasets/mnist'}" in caught.value.notes
    assert f"looked in: {tmp_path / 'datasets/mnist'}" in caught.value.notes
    cure = caught.value.notes[-1]
    assert cure.startswith("or put train-images-idx3-ubyte, train-labels-idx1-ubyte, ")
    assert cure.endswith(f"into {tmp_path / 'sub/datasets/mnist'}")


def test_a_folder_without_the_four_files_names_the_first_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte' does not exist"):
        Mnist(dir=".").locate(tmp_path)


def test_penguins_are_344_of_3_species() -> None:
    made = CsvSource(
        file="datasets/penguins/penguins.csv",
        target="species",
        numeric=("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"),
        category=("island", "sex"),
        missing="mean",
    ).locate(ROOT)
    facts = made.facts()
    assert facts.labels == ("Adelie", "Chinstrap", "Gentoo")
    assert (sum(facts.sizes.values()), facts.input) == (344, (9,))
    assert made.load().splits["test"].size == facts.sizes["test"] == 34


def test_shakespeare_is_one_text_of_80_characters() -> None:
    made = TextSource(file="datasets/shakespeare/shakespeare.txt.gz").locate(ROOT)
    facts = made.facts()
    assert facts.vocab == 80
    text = gzip.decompress(Path(made.file).read_bytes()).decode("ascii")
    assert text.startswith("HAMLET, PRINCE OF DENMARK\n")
    assert 1_100_000 < len(text) < 1_200_000
