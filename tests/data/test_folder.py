"""Folders of pictures: one size for all, classes by folder, damaged files named."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import decode
from gradcli.data.folder import ImageFolder
from gradcli.errors import ConfigError, DataError

Image = pytest.importorskip("PIL.Image")


def picture(width: int, height: int, seed: int = 0, mode: str = "RGB") -> Any:
    """Pixel (x, y) is (20 x, 20 y, seed), or 20 x + y where there is one channel."""
    made = Image.new(mode, (width, height))
    for y in range(height):
        for x in range(width):
            at = (20 * x % 256, 20 * y % 256, seed)
            made.putpixel((x, y), at if mode == "RGB" else (20 * x + y) % 256)
    return made


def filled(folder: Path, **files: Any) -> Path:
    """Pictures by "class/name", and other files as bytes."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content.save(path)
    return folder


def pets(folder: Path) -> Path:
    cats = {f"cat__{i}_dot_png": picture(4, 4, i) for i in range(3)}
    dogs = {f"dog__{i}_dot_PNG": picture(4, 4, 100 + i) for i in range(2)}
    return filled(folder, **cats, **dogs)


def source(folder: Path, **options: Any) -> ImageFolder:
    return ImageFolder(**{"dir": str(folder), "size": 4, **options}).locate(folder)


def test_folders_are_classes_and_pixels_are_kept(tmp_path: Path) -> None:
    made = source(pets(tmp_path), split={"train": 4, "val": 1}, seed=3)
    facts = made.facts()
    assert (facts.input, facts.classes, facts.labels) == ((3, 4, 4), 2, ("cat", "dog"))
    assert facts.sizes == {"train": 4, "val": 1}
    loaded = made.load()
    found = {}
    for split in loaded.splits.values():
        x, y = split.batch(engine.arange(split.size))
        for i in range(split.size):
            found[round(x[i, 2, 0, 0].item() * 255)] = y[i].item()
            assert (x[i, :2] * 255).round().tolist() == [
                [[20 * column for column in range(4)]] * 4,
                [[20 * row] * 4 for row in range(4)],
            ]
    assert found == {0: 0, 1: 0, 2: 0, 100: 1, 101: 1}


def test_the_order_is_the_seeds_and_the_hash_that_of_all_files(tmp_path: Path) -> None:
    pets(tmp_path)
    first, again, other = (source(tmp_path, seed=seed).load() for seed in (1, 1, 2))
    order = [each.splits["train"].batch(engine.arange(5))[0].tolist() for each in (first, again)]
    assert order[0] == order[1]
    assert other.splits["train"].batch(engine.arange(5))[0].tolist() != order[0]
    filled(tmp_path, cat__1_dot_png=picture(4, 4, 77))
    assert source(tmp_path, seed=1).load().sha256 != first.sha256 == again.sha256


@pytest.mark.parametrize(("width", "height"), [(8, 4), (4, 9), (5, 4)])
def test_of_the_longer_side_the_middle_is_kept(tmp_path: Path, width: int, height: int) -> None:
    filled(tmp_path, a__x_dot_png=picture(width, height))
    x, _ = source(tmp_path).load().splits["train"].batch(engine.tensor([0]))
    left, top = (width - 4) // 2, (height - 4) // 2
    assert (x[0, 0, 0] * 255).round().tolist() == [20 * (left + i) for i in range(4)]
    assert (x[0, 1, :, 0] * 255).round().tolist() == [20 * (top + i) for i in range(4)]


def test_pictures_are_made_one_size(tmp_path: Path) -> None:
    filled(tmp_path, a__x_dot_png=picture(3, 5), a__y_dot_jpg=picture(20, 11))
    x, _ = source(tmp_path, size=7).load().splits["train"].batch(engine.arange(2))
    assert x.shape == (2, 3, 7, 7)


def test_gray_pictures_have_one_channel(tmp_path: Path) -> None:
    filled(tmp_path, a__x_dot_png=picture(4, 4, mode="L"))
    x, _ = (
        source(tmp_path, color="gray", normalize=True)
        .load()
        .splits["train"]
        .batch(engine.tensor([0]))
    )
    assert x.shape == (1, 1, 4, 4)
    assert x[0, 0, 1, 2].item() == pytest.approx((41 / 255 - 0.456) / 0.224, rel=1e-5)


def test_a_test_folder_is_the_test_split(tmp_path: Path) -> None:
    pets(tmp_path / "train"), filled(tmp_path / "test", dog__0_dot_png=picture(4, 4, 9))
    made = source(tmp_path / "train", test_dir=str(tmp_path / "test"))
    assert made.facts().sizes == {"train": 5, "test": 1}
    assert made.load().splits["test"].batch(engine.tensor([0]))[1].tolist() == [1]
    filled(tmp_path / "test", bird__0_dot_png=picture(4, 4, 9))
    with pytest.raises(DataError, match=r"has the class 'bird', which .*train does not have"):
        replace(made).facts()


def test_other_files_are_left_out_and_told(tmp_path: Path) -> None:
    pets(filled(tmp_path, cat__notes_dot_txt=b"", cat___dot_hidden=b""))
    kinds = ".png, .jpg, .jpeg, .webp, .bmp or .gif"
    loaded = source(tmp_path).load()
    assert loaded.notes == (f"1 file is no {kinds} and is left out: cat/notes.txt",)
    assert loaded.facts.sizes == {"train": 5}
    filled(tmp_path, **{f"dog__{n}_dot_HEIC": b"" for n in range(3)})
    first = "cat/notes.txt, dog/0.HEIC, dog/1.HEIC, ..."
    assert source(tmp_path).load().notes == (f"4 files are no {kinds} and are left out: {first}",)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    whole = io.BytesIO()
    picture(30, 30).save(whole, "PNG")
    pets(filled(tmp_path, cat__bad_dot_png=whole.getvalue()[: len(whole.getvalue()) // 2]))
    with pytest.raises(DataError, match=r"bad\.png: not a whole PNG, JPEG, WebP, BMP or GIF"):
        source(tmp_path).load()


def test_the_content_decides_not_the_name(tmp_path: Path) -> None:
    tiff = io.BytesIO()
    picture(4, 4).save(tiff, "TIFF")
    filled(tmp_path, cat__a_dot_png=tiff.getvalue())
    with pytest.raises(DataError, match=r"a\.png: not a whole .* picture: it is a TIFF picture"):
        source(tmp_path).load()


def test_a_huge_picture_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(decode, "MOST_PIXELS", 15)
    with pytest.raises(DataError, match=r"\.(png|PNG): 4 x 4 pixels; at most 15 are read"):
        source(pets(tmp_path)).load()


def test_folders_without_pictures_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no folders"):
        source(tmp_path).facts()
    filled(tmp_path, cat__notes_dot_txt=b"")
    with pytest.raises(
        DataError, match=r"cat holds no picture; .* are read, and not cat/notes.txt$"
    ):
        source(tmp_path).facts()
    with pytest.raises(DataError, match=r"'nowhere' .* is no folder"):
        ImageFolder(dir="nowhere", size=4).locate(tmp_path)
    with pytest.raises(ConfigError, match="size must be 1 to"):
        ImageFolder(dir=".", size=0)


def test_without_pillow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(decode, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"Pillow, which is not installed: pip install 'gradcli\["):
        source(pets(tmp_path))


def test_a_new_picture_is_read_as_the_trained_ones(tmp_path: Path) -> None:
    loaded = source(pets(tmp_path), normalize=True).load()
    found = loaded.read(tmp_path / "dog" / "1.PNG")
    assert (list(found.names), found.inputs.shape) == (["1.PNG"], (1, 3, 4, 4))
    x, _ = loaded.splits["train"].batch(engine.arange(5))
    assert found.inputs[:][0].tolist() in [x[i].tolist() for i in range(5)]
