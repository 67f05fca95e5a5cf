from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from idx_bytes import idx_bytes, write

from gradcli import engine
from gradcli.data.cifar import Cifar10, Cifar100, parse
from gradcli.data.images import IdxSource
from gradcli.data.mnist import FILES, FashionMnist, Mnist
from gradcli.errors import ConfigError, DataError


def row(label: bytes, first: int) -> bytes:
    """One image: red counts up from `first`, green is 100, blue is 200."""
    red = bytes((first + i) % 256 for i in range(1024))
    return label + red + bytes([100]) * 1024 + bytes([200]) * 1024


def cifar10(folder: Path) -> Cifar10:
    """Two images in each of the six files; labels 0..9, then 3 and 4."""
    for i in range(1, 6):
        rows = row(bytes([2 * i - 2]), i) + row(bytes([2 * i - 1]), i)
        (folder / f"data_batch_{i}.bin").write_bytes(rows)
    (folder / "test_batch.bin").write_bytes(row(b"\3", 7) + row(b"\4", 8))
    return Cifar10(dir=str(folder)).locate(folder)


def indices(*numbers: int) -> Any:
    return engine.tensor(list(numbers), dtype=engine.int64)


def test_cifar10_reads_five_files_and_the_test_file(tmp_path: Path) -> None:
    source = cifar10(tmp_path)
    assert source.facts().input == (3, 32, 32)
    assert source.facts().sizes == {"train": 10, "test": 2}
    made = source.load()
    inputs, targets = made.splits["train"].batch(indices(9, 0, 3))
    assert inputs.shape == (3, 3, 32, 32) and inputs.dtype is engine.float32
    assert targets.tolist() == [9, 0, 3] and targets.dtype is engine.int64
    assert inputs[0, 0, 0, :3].tolist() == engine.tensor([5.0, 6.0, 7.0]).div(255).tolist()
    assert inputs[:, 1].amax().item() == pytest.approx(100 / 255)
    assert made.splits["test"].batch(indices(0, 1))[1].tolist() == [3, 4]
    assert list(made.sha256) == [*(f"train[{i}]" for i in range(5)), "test"]


def test_each_channel_is_normalised_by_its_own_numbers(tmp_path: Path) -> None:
    spread = {"mean": [0.5, 100 / 255, 0.0], "std": [1, 2, 0.5]}
    made = replace(cifar10(tmp_path), normalize=spread).load()
    inputs, _ = made.splits["train"].batch(indices(0))
    assert inputs[0, 0, 0, 0].item() == pytest.approx(1 / 255 - 0.5)
    assert inputs[0, 1].abs().amax().item() == 0
    assert inputs[0, 2, 0, 0].item() == pytest.approx(2 * 200 / 255)


def test_cifar100_takes_the_fine_label_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(row(bytes([19, 99]), 0))
    (tmp_path / "test.bin").write_bytes(row(bytes([1, 4]), 0))
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"kind{i}" for i in range(100)))
    source = Cifar100(dir=str(tmp_path)).locate(tmp_path)
    assert source.facts().labels[99] == "kind99"
    assert source.load().splits["train"].batch(indices(0))[1].tolist() == [99]


def test_names_that_do_not_name_all_classes_are_left_out(tmp_path: Path) -> None:
    source = cifar10(tmp_path)
    (tmp_path / "batches.meta.txt").write_text("cat\ndog\n")
    assert source.facts().labels == ()


@pytest.mark.parametrize("cut", [0, 1, 3072, 3074])
def test_a_file_that_is_no_rows_of_cifar_is_refused(tmp_path: Path, cut: int) -> None:
    source = cifar10(tmp_path)
    (tmp_path / "data_batch_2.bin").write_bytes(row(b"\0", 0)[:cut] + bytes(max(0, cut - 3073)))
    with pytest.raises(
        DataError, match=rf"data_batch_2.bin: {cut} bytes? (is|are) no whole number"
    ):
        source.facts()


def test_a_cifar_label_too_high_names_file_and_sample(tmp_path: Path) -> None:
    source = cifar10(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(row(b"\1", 0) + row(b"\12", 0))
    with pytest.raises(DataError, match=r"test_batch.bin: sample 1 has label 10, expected 0 to 9"):
        source.load()


def test_a_new_cifar_file_is_normalised_as_in_training(tmp_path: Path) -> None:
    made = replace(cifar10(tmp_path), normalize=True).load()
    found = made.read(tmp_path / "test_batch.bin")
    trained, _ = made.splits["test"].batch(indices(0, 1))
    assert found.inputs[:].tolist() == trained.tolist()
    assert found.names[1] == "test_batch.bin:1"


def test_cifar_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the CIFAR-10 files are not there") as caught:
        Cifar10(dir="nowhere").locate(tmp_path)
    assert any("nowhere" in note for note in caught.value.notes)


def test_parse_gives_pixels_without_labels() -> None:
    labels, pixels = parse(row(b"\1\2", 0) + row(b"\3\4", 1), 2, "f")
    assert labels == b"\2\4" and len(pixels) == 2 * 3072
    assert pixels[3072:3074] == b"\1\2"


def four_files(folder: Path) -> None:
    for key, name in FILES.items():
        count = 3 if "test" in key else 5
        if "images" in key:
            content = idx_bytes((count, 28, 28), bytes(i % 251 for i in range(count * 784)))
        else:
            content = idx_bytes((count,), bytes(range(count)))
        (folder / name).write_bytes(content)


def test_fashion_mnist_lies_in_its_own_folder_and_names_its_classes(tmp_path: Path) -> None:
    folder = tmp_path / "datasets" / "fashion_mnist"
    folder.mkdir(parents=True)
    four_files(folder)
    source = FashionMnist(normalize=True).locate(tmp_path)
    made = source.load()
    assert made.facts.labels[9] == "Ankle boot" and source.dir == str(folder)
    inputs, _ = made.splits["train"].batch(indices(0))
    assert inputs[0, 0, 0, 1].item() == pytest.approx((1 / 255 - 0.2860) / 0.3530)


def test_size_pads_with_zeros_in_the_middle(tmp_path: Path) -> None:
    four_files(tmp_path)
    made = Mnist(dir=str(tmp_path), size=32).locate(tmp_path).load()
    assert made.facts.input == (1, 32, 32)
    inputs, _ = made.splits["train"].batch(indices(1))
    plain, _ = Mnist(dir=str(tmp_path)).load().splits["train"].batch(indices(1))
    assert inputs[:, :, 2:30, 2:30].tolist() == plain.tolist()
    assert inputs.sum().item() == pytest.approx(plain.sum().item())
    new = made.read(tmp_path / FILES["images"])
    assert new.inputs[1:2].tolist() == inputs.tolist()


def test_an_odd_rest_of_padding_goes_to_the_end(tmp_path: Path) -> None:
    names = write(tmp_path, images=idx_bytes((1, 2, 2), b"\xff" * 4), labels=idx_bytes((1,), b"\0"))
    made = IdxSource(**names, size=5).load()
    inputs, _ = made.splits["train"].batch(indices(0))
    assert inputs[0, 0].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]


def test_a_size_below_the_images_is_refused(tmp_path: Path) -> None:
    four_files(tmp_path)
    with pytest.raises(DataError, match=r"size: 27 pads images .* each sample is \(1, 28, 28\)"):
        Mnist(dir=str(tmp_path), size=27).facts()


def test_the_target_of_an_autoencoder_is_its_input(tmp_path: Path) -> None:
    four_files(tmp_path)
    made = Mnist(dir=str(tmp_path), target="input", size=32).load()
    assert made.facts.target == (1, 32, 32)
    assert made.facts.classes is None and made.facts.labels == ()
    inputs, targets = made.splits["train"].batch(indices(2, 0))
    assert targets.shape == (2, 1, 32, 32) and targets.tolist() == inputs.tolist()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"mean": 0.5}, r"must be true, false or \{mean: ..., std: ...\}"),
        ({"mean": 0.5, "std": 0}, "std must be above 0"),
        ({"mean": [0.5, 0.5], "std": 1}, "mean must be a finite number or a list of 1"),
        ({"mean": "x", "std": 1}, "mean must be a finite number"),
        ({"mean": float("nan"), "std": 1}, "mean must be a finite number"),
        ({"mean": [True], "std": 1}, "mean must be a finite number"),
    ],
)
def test_numbers_that_cannot_normalise_are_refused(value: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Mnist(normalize=value)


def test_idx_files_of_16_bit_numbers_can_be_padded(tmp_path: Path) -> None:
    payload = struct.pack(">4h", 1, -2, 3, -4)
    images = idx_bytes((1, 2, 2), payload, kind=0x0B)
    names = write(tmp_path, images=images, labels=idx_bytes((1,), b"\0"))
    inputs, _ = IdxSource(**names, size=3).load().splits["train"].batch(indices(0))
    assert inputs[0, 0, :2, :2].tolist() == [[1, -2], [3, -4]]
