from __future__ import annotations

import struct
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from idx_bytes import idx_bytes, images, labels, packed, write

from gradcli.data import images as image_files
from gradcli.data.images import IdxSource
from gradcli.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[2]


def source(folder: Path, **files: bytes) -> IdxSource:
    """A located source of four images; `files` replace the usual ones."""
    write(folder, **{"images": images(), "labels": labels(), **files})
    return IdxSource(images="images", labels="labels").locate(folder)


def test_facts_come_from_the_headers(tmp_path: Path) -> None:
    facts = replace(source(tmp_path), split={"train": 3, "val": 1}).facts()
    assert facts.input == (1, 2, 2)
    assert facts.classes == 3
    assert facts.sizes == {"train": 3, "val": 1}


def test_test_files_become_the_test_split(tmp_path: Path) -> None:
    made = source(tmp_path)
    both = replace(made, test_images=made.images, test_labels=made.labels)
    assert both.facts().sizes == {"train": 4, "test": 4}
    with pytest.raises(ConfigError, match="split has 'test'"):
        replace(both, split={"train": 3, "test": 1}).facts()


def test_counts_that_differ_are_both_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"4 images in .*, but 3 labels in"):
        source(tmp_path, labels=labels((0, 1, 2))).facts()


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    made = source(tmp_path, images=idx_bytes((0, 2, 2)), labels=idx_bytes((0,)))
    with pytest.raises(DataError, match="empty: uint8 0 x 2 x 2"):
        made.facts()


def test_one_sample_is_a_dataset(tmp_path: Path) -> None:
    made = source(tmp_path, images=images(1), labels=labels((0,)))
    assert made.facts().sizes == {"train": 1}


def test_a_label_too_high_names_the_first_bad_sample(tmp_path: Path) -> None:
    made = replace(source(tmp_path, labels=labels((1, 255, 254, 0))), classes=10)
    with pytest.raises(DataError, match="sample 1 has label 255, expected 0 to 9") as caught:
        made.load()
    assert caught.value.exit_code == 3


def test_a_negative_label_names_the_sample(tmp_path: Path) -> None:
    made = source(tmp_path, labels=idx_bytes((4,), struct.pack(">4i", 0, 1, -1, 2), 0x0C))
    with pytest.raises(DataError, match="sample 2 has label -1"):
        made.facts()


@pytest.mark.parametrize(
    "bad", [idx_bytes((4,), bytes(16), 0x0D), idx_bytes((4, 1), bytes(4))], ids=["float", "2-d"]
)
def test_labels_of_another_form_are_refused(tmp_path: Path, bad: bytes) -> None:
    with pytest.raises(DataError, match="labels must be one whole number a sample"):
        source(tmp_path, labels=bad).facts()


def test_images_without_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no samples"):
        source(tmp_path, images=idx_bytes((4,), bytes(4))).facts()


def test_nan_in_float_images_names_the_sample(tmp_path: Path) -> None:
    values = struct.pack(">4f", 0, 1, 2, float("nan"))
    made = source(tmp_path, images=idx_bytes((4, 1), values, 0x0D))
    with pytest.raises(DataError, match="sample 3 holds nan"):
        made.load()


def test_test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    made = source(tmp_path, other=images(4, 3))
    with pytest.raises(DataError, match="does not go with uint8 4 x 2 x 2"):
        replace(made, test_images=str(tmp_path / "other"), test_labels=made.labels).facts()


def test_half_a_test_set_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="test_images and test_labels go together"):
        IdxSource(images="a", labels="b", test_images="c")


def test_gzip_under_a_plain_name_is_read_with_a_note(tmp_path: Path) -> None:
    made = source(tmp_path, images=packed(images())).load()
    assert made.notes == ("images is gzipped though its name does not say so",)
    assert set(made.sha256) == {"train.images", "train.labels"}


def test_a_batch_is_float_in_0_to_1_with_int64_labels(tmp_path: Path) -> None:
    from gradcli import engine

    made = replace(source(tmp_path), mean=0.5, std=2.0, split={"train": 1, "val": 3}).load()
    x, y = made.splits["val"].batch(engine.tensor([2, 0]))
    assert (x.shape, x.dtype, y.dtype) == ((2, 1, 2, 2), engine.float32, engine.int64)
    assert y.tolist() == [1, 1]
    expected = [(p / 255 - 0.5) / 2 for p in (12, 13, 14, 15, 4, 5, 6, 7)]
    assert x.reshape(-1).tolist() == pytest.approx(expected, rel=1e-6)


def test_signed_bytes_and_doubles_are_taken_as_they_are(tmp_path: Path) -> None:
    from gradcli import engine

    for kind, data in ((0x09, struct.pack(">2b", -5, 7)), (0x0E, struct.pack(">2d", -5, 7))):
        made = source(tmp_path, images=idx_bytes((2, 1), data, kind), labels=labels((0, 1))).load()
        assert made.splits["train"].batch(engine.tensor([0, 1]))[0].tolist() == [[-5.0], [7.0]]


def test_predict_reads_images_of_the_trained_shape_only(tmp_path: Path) -> None:
    made = source(tmp_path, new=packed(images(2)), other=images(2, 3)).load()
    unseen = made.read(tmp_path / "new")
    assert (unseen.inputs.shape, unseen.names) == ((2, 1, 2, 2), ["new:0", "new:1"])
    assert unseen.inputs[:].reshape(-1).tolist()[1] == pytest.approx(1 / 255)
    with pytest.raises(DataError, match=r"samples are \(1, 3, 3\), the model was trained on"):
        made.read(tmp_path / "other")


def with_test_files(folder: Path, images: bytes, test_images: bytes) -> IdxSource:
    made = source(folder, images=images, other=test_images)
    return replace(made, test_images=str(folder / "other"), test_labels=made.labels)


def test_a_damaged_training_file_is_told_before_a_damaged_test_file(tmp_path: Path) -> None:
    whole = packed(images())
    with pytest.raises(DataError, match="images: gzip data ends early"):
        with_test_files(tmp_path, whole[:-1], whole[:-1]).load()
    with pytest.raises(DataError, match="other: gzip data ends early"):
        with_test_files(tmp_path, whole, whole[:-1]).load()


def test_training_and_test_files_are_read_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    read_pair = image_files.read_pair

    def read_together(*of: Any) -> image_files.LabelledImages:
        both.wait(10)
        return read_pair(*of)

    monkeypatch.setattr(image_files, "read_pair", read_together)
    made = with_test_files(tmp_path, images(), images()).load()
    assert {name: split.size for name, split in made.splits.items()} == {"train": 4, "test": 4}
