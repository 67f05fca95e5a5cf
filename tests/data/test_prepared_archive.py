"""A large .npz archive is unpacked once, and gives what it gives in memory."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import files, npy, prepared_archive
from gradcli.data.npz_source import NpzSource
from gradcli.engine.device import meta
from gradcli.errors import DataError

numpy = pytest.importorskip("numpy")
DRAW = numpy.random.default_rng(1)
TYPES = ("f2", "f4", ">f8", "u1", "i2", ">i4", "u4", "i8", "b1")


def source(folder: Path, **keys: Any) -> NpzSource:
    given = {"file": "data.npz", "inputs": "x", "targets": "y", "cache": "kept", **keys}
    return NpzSource(split={"train": 30, "val": 10}, **given).locate(folder)


def written(folder: Path, kind: str = "f4", save: Any = numpy.savez, shape: Any = (40, 5)) -> Any:
    x = DRAW.integers(0, 2 if kind == "b1" else 200, shape).astype(kind)
    save(folder / "data.npz", x=x, y=numpy.arange(40) % 3, z=DRAW.random((40, 2)))
    return x


def content(made: NpzSource) -> tuple[Any, ...]:
    facts, loaded = made.facts(), made.load()
    batches = {
        name: [one.tolist() for one in split.batch(engine.arange(split.size))]
        for name, split in loaded.splits.items()
    }
    return facts, batches, loaded.sha256, loaded.notes, loaded.facts


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 100)
    monkeypatch.setattr(npy, "ROWS", 70)


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
@pytest.mark.parametrize("targets", ["y", "z"])
@pytest.mark.parametrize("kind", TYPES)
def test_it_gives_what_it_gives_in_memory(
    tmp_path: Path, request: Any, kind: str, targets: str, save: Any
) -> None:
    written(tmp_path, kind, save)
    whole = content(source(tmp_path, targets=targets))
    assert not (tmp_path / "kept").exists()
    request.getfixturevalue("large")
    assert content(source(tmp_path, targets=targets)) == whole
    assert len(list((tmp_path / "kept").glob("npz-*"))) == 2
    request.getfixturevalue("monkeypatch").setattr(npy, "unpack_rows", None)
    assert content(source(tmp_path, targets=targets)) == whole


@pytest.mark.usefixtures("large")
def test_pictures_are_padded_and_a_turned_array_is_read_whole(tmp_path: Path) -> None:
    written(tmp_path, "u1", shape=(40, 3, 3))
    made = source(tmp_path, size=5)
    batch = made.load().splits["train"].batch(engine.tensor([0]))[0]
    assert (batch.shape, batch[0, 0, 0].tolist()) == ((1, 1, 5, 5), [0.0] * 5)
    before = meta.DEVICE.allocated
    outline = made.outline(made.facts())
    assert meta.DEVICE.allocated == before and outline["val"].size == 10
    x = numpy.asfortranarray(DRAW.random((40, 5)))
    numpy.savez(tmp_path / "data.npz", x=x, y=numpy.arange(40) % 3)
    split: Any = source(tmp_path).load().splits["train"]
    assert split.inputs[3].tolist() == x[3].astype("f4").tolist()


@pytest.mark.usefixtures("large")
def test_damage_is_told(tmp_path: Path) -> None:
    x = written(tmp_path, "f4")
    whole = (tmp_path / "data.npz").read_bytes()
    at = whole.index(x.tobytes()[:40]) + 20
    (tmp_path / "data.npz").write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    with pytest.raises(DataError, match=r"data\.npz: not a whole \.npz archive: Bad CRC-32"):
        source(tmp_path).facts()
    x[17, 2] = numpy.nan
    numpy.savez(tmp_path / "data.npz", x=x, y=numpy.arange(40) % 3)
    with pytest.raises(DataError, match=r"data\.npz, x: sample 17 holds nan, expected numbers"):
        source(tmp_path).facts()
    numpy.savez(tmp_path / "whole.npz", x=x, y=numpy.arange(40) % 3)
    for change, what in ((lambda d: d[:-4], "it ends before"), (lambda d: d + b"1", "it goes on")):
        with (
            zipfile.ZipFile(tmp_path / "whole.npz") as old,
            zipfile.ZipFile(tmp_path / "data.npz", "w") as new,
        ):
            new.writestr("x.npy", change(old.read("x.npy")))
            new.writestr("y.npy", old.read("y.npy"))
        with pytest.raises(DataError, match=f"data.npz, x: {what}|sample 17"):
            source(tmp_path).facts()


@pytest.mark.usefixtures("large")
def test_an_archive_that_is_replaced_between_two_arrays_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    made = source(tmp_path)
    array_in = prepared_archive.array_in

    def replaced(*given: Any) -> Any:
        result = array_in(*given)
        written(tmp_path)
        return result

    monkeypatch.setattr(prepared_archive, "array_in", replaced)
    with pytest.raises(DataError, match=r"data\.npz' changed while it was read; start again"):
        made.load()


@pytest.mark.usefixtures("large")
def test_another_archive_is_prepared_in_the_same_cache(tmp_path: Path) -> None:
    written(tmp_path)
    made = source(tmp_path)
    facts = made.load().facts
    (tmp_path / "data.npz").rename(tmp_path / "new.npz")
    assert made.new_split(tmp_path / "new.npz", facts).split.size == 40  # type: ignore[arg-type]
    assert len(list((tmp_path / "kept").glob("npz-*"))) == 2
