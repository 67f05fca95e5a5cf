"""`split: {stratify: true}` in data with labels, on numbers as they lie there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.folder import ImageFolder
from gradcli.data.images import IdxSource
from gradcli.data.npy_source import NpySource
from gradcli.errors import ConfigError

SPLIT = {"train": "50%", "val": "50%", "stratify": True}


def idx(shape: tuple[int, ...], payload: bytes) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    return bytes([0, 0, 8, len(shape)]) + sizes + payload


def written(folder: Path, **options: Any) -> IdxSource:
    """Sample i has i in each pixel; the classes come one after another."""
    pixels = b"".join(bytes([sample] * 4) for sample in range(12))
    (folder / "x").write_bytes(idx((12, 2, 2), pixels))
    (folder / "y").write_bytes(idx((12,), bytes([0] * 6 + [1] * 4 + [2] * 2)))
    return IdxSource(**{"images": "x", "labels": "y", "split": SPLIT, **options}).locate(folder)


def test_the_first_of_each_class_are_trained_on(tmp_path: Path) -> None:
    loaded = written(tmp_path).load()
    inputs, targets = loaded.splits["train"].batch(engine.arange(6))
    assert targets.tolist() == [0, 0, 0, 1, 1, 2]
    assert (inputs[:, 0, 0, 0] * 255).round().tolist() == [0, 1, 2, 6, 7, 10]
    assert loaded.facts.sizes == {"train": 6, "val": 6}


def test_padded_pictures_are_those_of_the_split(tmp_path: Path) -> None:
    plain, large = (written(tmp_path, size=size).load().splits["val"] for size in (None, 4))
    at = engine.arange(6)
    assert large.batch(at)[0][:, :, 1:3, 1:3].tolist() == plain.batch(at)[0].tolist()


def test_the_outline_knows_the_rows(tmp_path: Path) -> None:
    source = written(tmp_path)
    outline: Any = source.outline(source.facts())
    assert outline["val"].rows.shape == (6,)


def test_augmented_pictures_are_those_of_the_split(tmp_path: Path) -> None:
    split: Any = written(tmp_path, augment=["hflip"]).load().splits["train"]
    state = engine.tensor([1, 0, 0])
    inputs, targets = split.augment(engine.tensor([5, 3]), state)
    assert targets.tolist() == [2, 1]
    assert (inputs[:, 0, 0, 0] * 255).round().tolist() == [10, 6]


def test_a_folder_of_pictures_has_the_same_pixels_and_hash(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, count in (("cat", 8), ("dog", 4)):
        (tmp_path / name).mkdir()
        for number in range(count):
            image.new("RGB", (2, 2), (number, 0, 0)).save(tmp_path / name / f"{number}.png")
    plain = {name: size for name, size in SPLIT.items() if name != "stratify"}
    loaded = [
        ImageFolder(dir=str(tmp_path), size=2, split=split).locate(tmp_path).load()
        for split in (SPLIT, plain)
    ]
    assert loaded[0].sha256 == loaded[1].sha256
    for split in loaded[0].splits.values():
        assert sorted(split.batch(engine.arange(6))[1].tolist()) == [0] * 4 + [1] * 2


def test_numbers_as_targets_are_refused(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    for name in "xy":
        numpy.save(tmp_path / f"{name}.npy", numpy.ones((4, 2), numpy.float32))
    source = NpySource(inputs="x.npy", targets="y.npy", split=SPLIT).locate(tmp_path)
    with pytest.raises(ConfigError, match="stratify shares out classes, and the targets here"):
        source.facts()
