"""Reading ahead is a guess: it gives what reading gives, and nothing depends on it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from idx_bytes import images

from gradcli.data import DATASETS, ahead, idx
from gradcli.errors import DataError
from gradcli.registry import Late

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "datasets" / "mnist"
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images(4, 2)))
    (folder / "broken-ubyte.gz").write_bytes(b"\x1f\x8bbroken")
    path = tmp_path / "a.yaml"
    path.write_text("data: {name: mnist}\n")
    return path


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    idx.forget()


def test_what_was_read_ahead_is_taken_once(config: Path, monkeypatch) -> None:
    begun: list[Path] = []
    read = idx._read
    monkeypatch.setattr(idx, "_read", lambda path: begun.append(path) or read(path))
    ahead.begin(config)
    file = config.parent / "datasets" / "mnist" / "train-images-idx3-ubyte.gz"
    for times in (1, 2):
        assert bytes(idx.read_idx(file)[0].numbers) == bytes(range(16))
        assert begun.count(file) == times
    with pytest.raises(DataError, match="gzip"):
        idx.read_idx(file.with_name("broken-ubyte.gz"))
    assert begun.count(file.with_name("broken-ubyte.gz")) == 1


@pytest.mark.parametrize("text", [b"data: {name: csv}", b"data: mnist2", b"\xff mnist", b""])
def test_other_configs_begin_nothing(config: Path, monkeypatch, text: bytes) -> None:
    monkeypatch.setattr(ahead, "read_ahead", lambda path: pytest.fail(str(path)))
    config.write_bytes(text)
    ahead.begin(config)
    ahead.begin(config.parent)
    ahead.begin(config.with_name("missing.yaml"))


def test_the_guess_needs_neither_engine_nor_yaml() -> None:
    code = (
        "import sys; from gradcli.data import ahead; "
        "print([n for n in ('gradcli.engine', 'gradcli.config', 'yaml') if n in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


def test_a_dataset_is_imported_when_it_is_looked_up() -> None:
    table: Late[object] = Late({"one": "gradcli.data.mnist:Mnist", "none": "gradcli.nowhere:None"})
    assert ("none" in table, list(table), len(table)) == (True, ["one", "none"], 2)
    assert table["one"] is DATASETS["mnist"]
    table["two"] = 2
    del table["none"]
    assert dict(table) == {"one": DATASETS["mnist"], "two": 2}
    assert table.get("none") is None
