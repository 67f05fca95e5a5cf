"""Many pictures are decoded once, and give what they give in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import image_files
from gradcli.data.prepared import folder_hash, identity
from gradcli.engine.device import meta
from gradcli.errors import DataError

Image = pytest.importorskip("PIL.Image")

from gradcli.data.folder import ImageFolder  # noqa: E402


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Two classes, one picture that is transparent, and a test folder."""
    for number in range(14):
        name = tmp_path / ("test" if number > 10 else "pets") / ("cat", "dog")[number % 2]
        name.mkdir(parents=True, exist_ok=True)
        alpha = 0 if number == 4 else 255
        Image.new("RGBA", (5, 4), (number, 9, 200, alpha)).save(name / f"{number}.png")
    return tmp_path


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pictures are many, and files may have been written just now."""
    monkeypatch.setattr(image_files, "SMALL_FILES", 2)
    monkeypatch.setattr(folder_hash, "YOUNG", 0)


@pytest.fixture
def verifying() -> Iterator[None]:
    identity.verify_data = True
    yield
    identity.verify_data = False


def source(pets: Path, **keys: Any) -> ImageFolder:
    given = {"dir": "pets", "test_dir": "test", "size": 3, "cache": "kept", "seed": 5, **keys}
    return ImageFolder(**given).locate(pets)


def content(pets: Path, **keys: Any) -> tuple[Any, ...]:
    made = source(pets, **keys).load()
    batches = {
        name: [one.tolist() for one in split.batch(engine.arange(split.size))]
        for name, split in made.splits.items()
    }
    return batches, made.sha256, made.notes, made.facts


def forbidden(*_: object) -> Any:
    raise AssertionError("a picture was decoded")


def test_prepared_pictures_are_those_in_memory(pets: Path, monkeypatch: Any) -> None:
    whole = content(pets)
    assert not (pets / "kept").exists()
    monkeypatch.setattr(image_files, "SMALL_FILES", 2)
    assert content(pets) == whole == content(pets)
    assert whole[2] == (
        "1 picture is transparent in places, where the colour behind is taken as it is stored",
    )


@pytest.mark.usefixtures("many")
def test_they_are_decoded_once(pets: Path, monkeypatch: Any) -> None:
    whole = content(pets)
    monkeypatch.setattr(image_files, "decode_image", forbidden)
    monkeypatch.setattr(image_files, "read", forbidden)
    assert content(pets) == whole
    (pets / "pets").rename(pets / "moved")
    monkeypatch.undo()
    monkeypatch.setattr(image_files, "SMALL_FILES", 2)
    monkeypatch.setattr(image_files, "decode_image", forbidden)
    assert content(pets, dir="moved") == whole


@pytest.mark.usefixtures("many")
def test_they_are_prepared_when_facts_are_asked_for_and_need_no_memory(pets: Path) -> None:
    made = source(pets)
    facts = made.facts()
    sets = sorted((pets / "kept").glob("pictures-*"))
    before = meta.DEVICE.allocated
    outline = made.outline(facts)
    loaded = made.load()
    assert sorted((pets / "kept").glob("pictures-*")) == sets and len(sets) == 2
    assert meta.DEVICE.allocated - before == 4 * 14  # the labels
    for name, split in loaded.splits.items():
        assert outline[name].inputs.shape == split.inputs.shape  # type: ignore[attr-defined]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("keys", [{"size": 4}, {"color": "gray"}, {"seed": 6}])
def test_other_keys_make_another_set(pets: Path, keys: dict[str, Any]) -> None:
    before = content(pets)
    assert content(pets, **keys) != before
    assert content(pets) == before


@pytest.mark.usefixtures("many")
def test_an_edited_picture_is_seen(pets: Path) -> None:
    before = content(pets)
    path = pets / "pets" / "cat" / "2.png"
    status = path.stat()
    Image.new("RGBA", (5, 4), (77, 9, 200, 255)).save(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = content(pets)
    assert before[1]["train"] != after[1]["train"] and before[1]["test"] == after[1]["test"]
    assert content(pets) == after


def test_pictures_that_are_young_are_hashed_again(pets: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(image_files, "SMALL_FILES", 2)
    before = content(pets)
    monkeypatch.setattr(image_files, "decode_image", forbidden)
    assert content(pets) == before
    assert not (pets / "kept" / "known").exists()


@pytest.mark.usefixtures("many", "verifying")
def test_verifying_hashes_every_picture(pets: Path, monkeypatch: Any) -> None:
    content(pets)
    read: list[Path] = []
    monkeypatch.setattr(image_files, "read", lambda path: read.append(path) or path.read_bytes())
    content(pets)
    assert len(read) == 14


@pytest.mark.usefixtures("many")
def test_a_picture_edited_meanwhile_is_refused(pets: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(folder_hash, "folder_hash", lambda *_: "0" * 64)
    with pytest.raises(DataError, match="pets: a picture was edited while they were being prepar"):
        content(pets)
    assert [path for path in (pets / "kept").iterdir() if path.name != "known"] == []


@pytest.mark.usefixtures("many")
def test_a_damaged_picture_is_named(pets: Path) -> None:
    (pets / "pets" / "cat" / "2.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(DataError, match=r"2\.png: not a whole"):
        content(pets)
    (pets / "pets" / "cat" / "2.png").unlink()
    os.mkfifo(pets / "pets" / "cat" / "2.png")
    with pytest.raises(DataError, match=r"2\.png' is a pipe"):
        content(pets)


def test_all_damaged_pictures_are_named_at_once(pets: Path, monkeypatch: Any) -> None:
    for name in ("cat/2.png", "dog/1.png", "dog/3.png"):
        (pets / "pets" / name).write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(DataError, match=r"cat/2\.png: not a whole") as caught:
        content(pets)
    others, cure = caught.value.notes
    assert others == "these cannot be read either: dog/1.png, dog/3.png"
    assert cure.startswith("replace what is damaged, or take it out of ")
    monkeypatch.setattr(image_files, "_MOST_NAMES", 1)
    with pytest.raises(DataError) as caught:
        content(pets)
    assert caught.value.notes[1] == "there may be more: the reading ended here"


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("known", [b"", b"[]", b"{", b'{"a": 1}', b"\xff"])
def test_a_damaged_book_of_hashes_costs_a_hash(pets: Path, known: bytes) -> None:
    before = content(pets)
    for path in (pets / "kept" / "known").glob("folder-*"):
        path.write_bytes(known)
    assert content(pets) == before


@pytest.mark.usefixtures("many")
def test_another_version_of_pillow_decodes_them_anew(pets: Path, monkeypatch: Any) -> None:
    content(pets)
    before = set((pets / "kept").glob("pictures-*"))
    monkeypatch.setattr(image_files, "version", lambda package: "0.0")
    content(pets)
    assert len(set((pets / "kept").glob("pictures-*")) - before) == len(before)
