"""Large arrays are mapped where they lie, and a batch holds the same numbers as from memory."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import files
from gradcli.data.facts import DataFacts
from gradcli.data.hashes import Hashes
from gradcli.data.images import IdxSource
from gradcli.data.npy_source import NpySource
from gradcli.data.prepared import mapped
from gradcli.errors import DataError

SAMPLES, SHAPE = 40, (1, 4, 5)
CODES = {"<f4": "f", "|u1": "B", "<i4": "i", "<i8": "q", "|b1": "B", "<f8": "d"}


def write(path: Path, kind: str, shape: Sequence[int], numbers: Sequence[float]) -> str:
    """A file as numpy.save writes it."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    body = array(CODES[kind], numbers).tobytes()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + body)
    return str(path)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 0)


def source(folder: Path, kind: str = "<f4", **keys: Any) -> NpySource:
    count = SAMPLES * math.prod(SHAPE)
    numbers = [i % 2 if kind == "|b1" else i % 251 for i in range(count)]
    inputs = write(folder / "x.npy", kind, (SAMPLES, *SHAPE), numbers)
    targets = write(folder / "y.npy", "<i8", (SAMPLES,), [i % 3 for i in range(SAMPLES)])
    return NpySource(inputs=inputs, targets=targets, **keys)


WAYS: list[dict[str, Any]] = [
    {},
    {"size": 8},
    {"target": "input", "size": 7},
    {"augment": ["hflip", {"crop": 1}], "size": 6},
    {"split": {"train": 20, "val": 15}, "mean": 0.5, "std": 2.0},
    {"split": {"train": "50%", "val": "50%", "stratify": True}},
]


@pytest.mark.parametrize("kind", ["<f4", "|u1", "<i4", "<i8", "|b1"])
@pytest.mark.parametrize("way", WAYS, ids=[str(list(way)) for way in WAYS])
def test_a_batch_is_the_same_from_memory_and_mapped(
    way: dict[str, Any], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = source(tmp_path, kind, **way)
    memory = data.load()
    monkeypatch.setattr(files, "LARGE", 0)
    there = data.load()
    assert isinstance(there.sha256, Hashes)
    assert dict(there.sha256) == dict(memory.sha256)
    assert there.facts == memory.facts
    assert data.facts().sizes == {name: split.size for name, split in there.splits.items()}
    for name, split in there.splits.items():
        indices = engine.tensor([0, 3, split.size - 1])
        for ours, theirs in zip(
            split.batch(indices), memory.splits[name].batch(indices), strict=True
        ):
            assert ours.shape == theirs.shape
            assert ours.tolist() == theirs.tolist()


@pytest.mark.usefixtures("large")
def test_nothing_is_copied(tmp_path: Path) -> None:
    there = source(tmp_path, size=8, split={"train": 20, "val": 20}).load()
    spans = [(one.address, one.address + one.length) for one in mapped.mappings()]
    for split in there.splits.values():
        for tensor in (split.inputs, split.targets):  # type: ignore[attr-defined]
            address = engine_address(tensor)
            assert any(first <= address < last for first, last in spans)


def engine_address(tensor: Any) -> int:
    from gradcli.engine.device import cpu

    return cpu.address(tensor.array.storage)


@pytest.mark.usefixtures("large")
def test_a_number_that_is_none_is_found_in_the_background(tmp_path: Path) -> None:
    data = source(tmp_path)
    numbers = [0.0] * (SAMPLES * math.prod(SHAPE))
    numbers[7 * math.prod(SHAPE) + 3] = math.inf
    write(tmp_path / "x.npy", "<f4", (SAMPLES, *SHAPE), numbers)
    there = data.load()
    with pytest.raises(DataError, match=r"x\.npy: sample 7 holds inf"):
        dict(there.sha256)


@pytest.mark.usefixtures("large")
def test_labels_are_looked_at_before_the_first_step(tmp_path: Path) -> None:
    data = source(tmp_path, classes=2)
    with pytest.raises(DataError, match=r"y\.npy: sample 2 has label 2, expected 0 to 1"):
        data.load()


@pytest.mark.usefixtures("large")
def test_a_header_that_promises_other_bytes_is_refused(tmp_path: Path) -> None:
    data = source(tmp_path)
    with (tmp_path / "x.npy").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="expected 3328 bytes from the header"):
        data.facts()


@pytest.mark.usefixtures("large")
def test_what_is_mapped_is_outlined_as_it_is_loaded_and_takes_no_memory(tmp_path: Path) -> None:
    data = source(tmp_path, size=8, split={"train": 20, "val": 20})
    facts = data.facts()
    before = engine_meta().allocated, engine_meta().mapped
    outline, there = data.outline(facts), data.load()
    assert engine_meta().allocated == before[0]
    assert engine_meta().mapped - before[1] == SAMPLES * (4 * math.prod(SHAPE) + 8)
    for name, split in there.splits.items():
        shown = outline[name]
        for ours, theirs in (
            (shown.inputs, split.inputs),  # type: ignore[attr-defined]
            (shown.targets, split.targets),  # type: ignore[attr-defined]
        ):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert shown.frame == split.frame == (1, 8, 8)  # type: ignore[attr-defined]


def engine_meta() -> Any:
    from gradcli.engine.device import meta

    return meta.DEVICE


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 4), (7,)])
def test_idx_files_of_bytes_are_mapped(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: dict[str, Any] = {"split": {"train": 20, "val": 20}}
    keys |= {"size": 9} if len(shape) > 1 else {}
    images = idx(tmp_path / "images", (SAMPLES, *shape), [i % 251 for i in range(3000)])
    labels = idx(tmp_path / "labels", (SAMPLES,), [i % 3 for i in range(SAMPLES)])
    data = IdxSource(images=images, labels=labels, **keys)
    memory = data.load()
    monkeypatch.setattr(files, "LARGE", SAMPLES + 8)  # the labels stay in memory
    there = data.load()
    assert dict(there.sha256) == dict(memory.sha256)
    assert isinstance(there.sha256, Hashes)
    outline = data.outline(data.facts())
    for name, split in there.splits.items():
        indices = engine.tensor([0, 3, split.size - 1])
        ours, theirs = split.batch(indices), memory.splits[name].batch(indices)
        assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]
        assert outline[name].inputs.shape == split.inputs.shape  # type: ignore[attr-defined]


def idx(path: Path, shape: tuple[int, ...], numbers: Sequence[int]) -> str:
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    body = bytes([*numbers, *numbers][: math.prod(shape)])
    path.write_bytes(bytes([0, 0, 8, len(shape)]) + sizes + body)
    return str(path)


def mapped_files() -> set[Path]:
    return {one.path for one in mapped.mappings()}


@pytest.mark.parametrize("kind", ["<f4", "|u1", "<f8"])
@pytest.mark.parametrize("way", [{}, {"size": 8}, {"target": "input", "size": 7}], ids=str)
def test_new_data_is_the_same_from_memory_and_mapped(
    way: dict[str, Any], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = source(tmp_path, kind, **way)
    loaded, inputs = data.load(), Path(data.inputs)
    assert isinstance(loaded.facts, DataFacts)
    memory = data.new_inputs(inputs, loaded.facts), data.new_split(tmp_path, loaded.facts)
    assert not mapped_files()
    monkeypatch.setattr(files, "LARGE", 0)
    there = data.new_inputs(inputs, loaded.facts), data.new_split(tmp_path, loaded.facts)
    assert len(mapped_files()) == (1 if "target" in way else 2)
    assert (inputs in mapped_files()) == (kind != "<f8")  # others are prepared
    assert there[0].inputs[3:9].tolist() == memory[0].inputs[3:9].tolist()
    assert list(there[0].names) == list(memory[0].names)
    some = engine.tensor([0, 7, SAMPLES - 1])
    for ours, theirs in zip(there[1].split.batch(some), memory[1].split.batch(some), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_new_idx_files_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(struct.pack(">HBB3I", 0, 8, 3, 10, 4, 5) + bytes(range(200)))
    labels.write_bytes(struct.pack(">HBBI", 0, 8, 1, 10) + bytes(i % 3 for i in range(10)))
    data = IdxSource(images=str(images), labels=str(labels))
    facts = data.load().facts
    assert isinstance(facts, DataFacts)
    memory = data.new_inputs(images, facts).inputs[:].tolist()
    monkeypatch.setattr(files, "LARGE", 0)
    there = data.new_inputs(images, facts), data.new_split(tmp_path, facts).split
    assert images in mapped_files()
    assert there[0].inputs[:].tolist() == memory
    assert there[1].batch(engine.arange(10))[0].tolist() == memory


@pytest.mark.usefixtures("large")
def test_a_number_in_new_data_that_is_none_is_told_before_any_answer(tmp_path: Path) -> None:
    data = source(tmp_path)
    facts = data.load().facts
    assert isinstance(facts, DataFacts)
    numbers = [0.0] * (SAMPLES * math.prod(SHAPE))
    numbers[7 * math.prod(SHAPE) + 2] = math.nan
    new = Path(write(tmp_path / "new.npy", "<f4", (SAMPLES, *SHAPE), numbers))
    with pytest.raises(DataError, match="sample 7"):
        data.new_inputs(new, facts)
    new.replace(data.inputs)
    with pytest.raises(DataError, match="sample 7"):
        data.new_split(tmp_path, facts)
