"""The hash of an own dataset's split is the same in the background."""

from __future__ import annotations

import hashlib
import mmap
import threading
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import files, own_hash
from gradcli.data.hashes import Hashes, so_far
from gradcli.data.own import OwnDataset
from gradcli.data.prepared import progress
from gradcli.dataclass import dataclass

X, Y = bytes(i % 251 for i in range(6000)), bytes(i % 3 for i in range(20))


@dataclass(frozen=True, kw_only=True)
class Mapped(OwnDataset):
    """Two splits in a file, one in memory."""

    file: Path

    def splits(self) -> Any:
        with self.file.open("rb") as file:
            x = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast(
                "B", (20, 300)
            )
        return {"train": (x, Y), "val": (engine.zeros(4, 300), engine.zeros(4))}


@pytest.fixture
def source(tmp_path: Path) -> Mapped:
    (tmp_path / "x.bin").write_bytes(X)
    return Mapped(file=tmp_path / "x.bin")


def test_large_mapped_arrays_are_hashed_while_the_training_begins(
    source: Mapped, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = source.load().sha256
    assert small["train"] == hashlib.sha256(X + Y).hexdigest()
    go_on, told = threading.Event(), list[tuple[Any, ...]]()
    usual = own_hash.TensorReading.read

    def read(self: own_hash.TensorReading) -> None:
        if threading.current_thread().name == "hashes":
            go_on.wait(20)
        usual(self)

    def watch(*words: Any) -> None:
        told.append(words)
        go_on.set()

    monkeypatch.setattr(own_hash.TensorReading, "read", read)
    monkeypatch.setattr(files, "LARGE", 4000 * 4)
    in_memory = Mapped(file=source.file).load().sha256
    assert not isinstance(in_memory, Hashes)
    monkeypatch.setattr(files, "LARGE", 5000)
    monkeypatch.setattr(own_hash, "BLOCK", 1000)
    later = Mapped(file=source.file).load().sha256
    assert so_far(later) == {"train": None, "val": small["val"]}
    monkeypatch.setattr(progress, "watcher", watch)
    assert dict(later) == dict(small)
    assert so_far(later) == dict(small)
    assert told[0] == ("hashing split 'train'", 0, 6020, "B")


def test_what_goes_wrong_is_told_to_whoever_waits() -> None:
    reading = own_hash.TensorReading("train", [engine.zeros(3)], 12)
    reading._unread[0].release()
    reading.read()
    assert isinstance(reading.fault, ValueError)
    with pytest.raises(ValueError, match="released memoryview"):
        reading.result()
