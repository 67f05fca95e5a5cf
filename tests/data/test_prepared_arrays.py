"""Large .npy and IDX files that cannot be mapped as they lie give what they give in memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from idx_bytes import idx_bytes, packed

from gradcli import engine
from gradcli.data import files, images, prepared_array
from gradcli.data.images import IdxSource
from gradcli.data.npy_source import NpySource
from gradcli.data.prepared import mapped
from gradcli.engine.device import meta
from gradcli.errors import DataError

numpy = pytest.importorskip("numpy", reason="it writes arrays of every type and order")
DRAW = numpy.random.default_rng(2)
SAMPLES = 40
TYPES = ("<f8", ">f4", ">f8", "<f2", "<i2", "<i1", "<u2", "<u4", "<u8", ">i8")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 200)
    monkeypatch.setattr(prepared_array, "BLOCK", 300)
    monkeypatch.setattr(prepared_array, "TRANSPOSE_BYTES", 500)


def content(source: Any, folder: Path) -> tuple[Any, ...]:
    source = source.locate(folder)
    facts, loaded = source.facts(), source.load()
    batches = {
        name: [one.tolist() for one in split.batch(engine.arange(split.size))]
        for name, split in loaded.splits.items()
    }
    stored = {
        name: (split.inputs.dtype, split.targets.dtype) for name, split in loaded.splits.items()
    }
    return facts, batches, stored, dict(loaded.sha256), loaded.notes, loaded.facts


def arrays(folder: Path, kind: str, shape: tuple[int, ...] = (SAMPLES, 3, 4), **keys: Any) -> Any:
    order = keys.pop("order", "C")
    x = numpy.asarray(DRAW.integers(0, 120, shape).astype(kind), order=order)
    numpy.save(folder / "x.npy", x)
    y = (numpy.arange(SAMPLES) % 3).astype(">i2" if kind != "<i2" else "<f8")
    numpy.save(folder / "y.npy", y)
    split = {"train": 30, "val": 10}
    return NpySource(inputs="x.npy", targets="y.npy", cache="kept", split=split, **keys)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [*TYPES, "|b1", "|u1", "<f4"])
def test_an_array_gives_what_it_gives_in_memory(
    kind: str, order: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = arrays(tmp_path, "u1", order=order)
    if kind == "|b1":
        numpy.save(tmp_path / "x.npy", numpy.asfortranarray(DRAW.random((SAMPLES, 3, 4)) < 0.5))
    else:
        source = arrays(tmp_path, kind, order=order)
    whole = content(source, tmp_path)
    assert not (tmp_path / "kept").exists()
    request.getfixturevalue("large")
    assert content(source, tmp_path) == whole
    assert list((tmp_path / "kept").glob("npy-*"))
    request.getfixturevalue("monkeypatch").setattr(prepared_array, "_rows", None)
    assert content(source, tmp_path) == whole


@pytest.mark.usefixtures("large")
def test_prepared_arrays_are_mapped_padded_in_the_batch_and_outlined(tmp_path: Path) -> None:
    source = arrays(tmp_path, "<f8", (SAMPLES, 2, 3, 3), size=5).locate(tmp_path)
    before = meta.DEVICE.allocated
    facts = source.facts()
    outline = source.outline(facts)
    assert meta.DEVICE.allocated == before
    splits = source.load().splits
    assert {one.path.parent.parent.name for one in mapped.mappings()} == {"kept"}
    for name, split in splits.items():
        assert split.frame == outline[name].frame == (2, 5, 5)
        assert split.inputs.dtype is outline[name].inputs.dtype is engine.float32


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_number_that_is_none_is_named_with_its_sample(order: str, tmp_path: Path) -> None:
    source = arrays(tmp_path, "<f8", order=order).locate(tmp_path)
    x = numpy.load(tmp_path / "x.npy")
    x[17, 2, 1] = 1e300
    numpy.save(tmp_path / "x.npy", x)
    with pytest.raises(DataError, match=r"x\.npy: sample 17 holds inf, expected numbers"):
        source.facts()
    numpy.save(tmp_path / "x.npy", numpy.full(x.shape, 1 << 63, "<u8"))
    with pytest.raises(DataError, match=r"x\.npy: its number \d+ is beyond int64"):
        source.facts()
    assert len(list((tmp_path / "kept").glob("npy-*"))) == 1  # the targets


CODES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def pictures(folder: Path, kind: int, pack: Any = bytes, shape: Any = (SAMPLES, 4, 5)) -> IdxSource:
    numbers = DRAW.integers(0, 120, math.prod(shape)).astype(CODES[kind])
    (folder / "images").write_bytes(pack(idx_bytes(shape, numbers.tobytes(), kind)))
    (folder / "labels").write_bytes(idx_bytes((SAMPLES,), bytes(i % 3 for i in range(SAMPLES))))
    split: Any = {"train": 30, "val": 10}
    return IdxSource(images="images", labels="labels", cache="kept", split=split)


@pytest.mark.parametrize("pack", [bytes, packed], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", CODES)
def test_an_idx_file_gives_what_it_gives_in_memory(
    kind: int, pack: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = pictures(tmp_path, kind, pack)
    whole = content(source, tmp_path)
    assert not (tmp_path / "kept").exists()
    request.getfixturevalue("large")
    assert content(source, tmp_path) == whole
    as_it_lies = kind == 0x08 and pack is bytes
    assert len(list((tmp_path / "kept").glob("idx-*"))) == (not as_it_lies)


@pytest.mark.usefixtures("large")
def test_a_damaged_idx_file_is_told(tmp_path: Path) -> None:
    source = pictures(tmp_path, 0x0D, packed).locate(tmp_path)
    numbers = numpy.zeros(SAMPLES * 20, ">f4")
    for change, words in (
        (lambda data: packed(data[:-4]), r"expected 3216 bytes from the header \(.*\), got fewer"),
        (lambda data: packed(data + b"1"), "got more"),
        (lambda data: packed(data)[:-9], "gzip data ends early"),
    ):
        data = idx_bytes((SAMPLES, 4, 5), numbers.tobytes(), 0x0D)
        (tmp_path / "images").write_bytes(change(data))
        with pytest.raises(DataError, match=words):
            source.facts()
    numbers[17 * 20 + 3] = numpy.nan
    (tmp_path / "images").write_bytes(idx_bytes((SAMPLES, 4, 5), numbers.tobytes(), 0x0D))
    with pytest.raises(DataError, match="images: sample 17 holds nan, expected numbers"):
        source.facts()
    (tmp_path / "images").write_bytes(packed(idx_bytes((SAMPLES, 2**16, 2**15), b"", 0x0D)))
    with pytest.raises(DataError, match="cannot hold"):
        images.large_images(tmp_path / "images", str(tmp_path / "kept"))
