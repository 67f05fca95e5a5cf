"""Own datasets whose splits are arrays in files, or samples one after another."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trusting import load

from gradcli.cli.main import run
from gradcli.config import build
from gradcli.data import own_mapping
from gradcli.errors import DataError, ErrorGroup, GradcliError

CODE = """\
import mmap
from pathlib import Path

import gradcli
from gradcli import engine


@gradcli.dataset
class Squares:
    count: int = 40
    file: Path = Path("numbers.bin")

    def rows(self):
        with open("asked", "a") as file:
            print("asked", file=file)
        values = self.file.read_bytes()
        for at in range(self.count):
            yield engine.tensor([values[at] / 8, 1.5, at / 16]), at % 3

    def splits(self):
        val = list(self.rows())[:7]
        return {"train": gradcli.Stream(self.count, self.rows), "val": val}
"""
MEMORY = """\
    def splits(self):
        x = engine.stack([sample for sample, _ in self.rows()])
        y = engine.tensor([label for _, label in self.rows()])
        return {"train": (x, y), "val": (x[:7], y[:7])}
"""
MAPPED = """\
    def splits(self):
        import numpy
        x = numpy.load("x.npy", mmap_mode="r")
        with open("y.bin", "rb") as file:
            y = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return {"train": (x[:30], y[:30]), "val": (x[30:], y[30:])}
"""
CONFIG = """\
gradcli: 1
name: it
code: own.py
data: {name: squares}
model: [linear: 8, relu, linear: $data.classes]
loss: cross_entropy
optim: {name: adam, lr: 0.01}
train: {epochs: 3, batch: 8}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "it.yaml").write_text(CONFIG)
    (tmp_path / "numbers.bin").write_bytes(bytes(range(100)))
    return tmp_path


@pytest.fixture
def weights(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def command(*options: str) -> str:
        code = run(["train", "it.yaml", "--no-report", "--trust-code", *options])
        shown = capfd.readouterr()
        assert code == 0, shown.err
        return re.findall(r"weights sha256 (\w+)", shown.out + shown.err)[0]

    return command


def asked(folder: Path) -> int:
    return (folder / "asked").read_text().count("asked")


def test_samples_one_after_another_are_those_of_tensors(
    folder: Path, weights: Callable[..., str]
) -> None:
    streamed = weights("--threads", "1")
    assert weights("--threads", "2") == streamed
    (folder / "own.py").write_text(CODE[: CODE.index("    def splits")] + MEMORY)
    assert weights("--threads", "1") == streamed


def test_they_are_prepared_once_and_anew_where_something_changes(
    folder: Path, weights: Callable[..., str]
) -> None:
    first = weights()
    before = asked(folder)
    assert weights() == first
    alone = asked(folder) - before
    assert before > alone  # for the list of the other split alone
    (folder / "numbers.bin").write_bytes(bytes(range(100, 200)))
    before = asked(folder)
    assert weights() != first
    assert asked(folder) - before == alone + 1
    assert len(list((folder / "cache" / "gradcli").glob("own-*"))) == 2


@pytest.mark.parametrize(
    ("field", "value", "use"),
    [
        ("file: str", "'numbers.bin'", "Path(self.file)"),
        ("files: tuple[str, ...]", "('none', 'numbers.bin')", "Path(self.files[1])"),
    ],
)
def test_a_file_that_a_field_names_as_text_is_known_by_its_content(
    folder: Path, weights: Callable[..., str], field: str, value: str, use: str
) -> None:
    text = CODE.replace('file: Path = Path("numbers.bin")', f"{field} = {value}")
    (folder / "own.py").write_text(text.replace("self.file.read", f"{use}.read"))
    first = weights()
    (folder / "numbers.bin").write_bytes(bytes(range(100, 200)))
    assert weights() != first


def test_code_that_is_edited_once_it_runs_prepares_nothing(folder: Path) -> None:
    edit = 'Path(__file__).write_text(Path(__file__).read_text() + "# more\\n")'
    (folder / "own.py").write_text(f"{CODE}\n{edit}\n")
    with pytest.raises((ErrorGroup, GradcliError)) as caught:
        load(folder / "it.yaml")
    error = caught.value
    [told] = error.errors if isinstance(error, ErrorGroup) else [error]
    assert "own.py: it was edited since it was run" in told.message
    assert list((folder / "cache" / "gradcli").glob("own-*")) == []


def test_what_was_prepared_has_facts(folder: Path) -> None:
    config = load(folder / "it.yaml")
    assert (config.facts.input, config.facts.classes) == ((3,), 3)
    assert config.facts.sizes == {"train": 40, "val": 7}
    outline = config.data.outline(config.facts)
    splits = build(config).dataset.splits
    assert {name: split.size for name, split in outline.items()} == config.facts.sizes
    assert outline["train"].inputs.shape == splits["train"].inputs.shape  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Stream(self.count", "Stream(41", r"own.py:18: split 'train': it ends after 40 samples"),
        ("Stream(self.count", "Stream(39", r"own.py:18: split 'train': it gives more than the 39 "),
        (
            "1.5, at / 16]",
            "1.5][at // 30:]",
            r"own.py:18: split 'train': sample 30 has inputs float",
        ),
        (
            "at % 3",
            "at % 3 if at < 9 else 0.5",
            "own.py:18: split 'train': sample 9 has targets fl",
        ),
        (
            "at % 3",
            "object()",
            "own.py:18: split 'train': sample 0 has targets that are no numbers",
        ),
        ("at % 3", "1 // (20 - at)", "own.py:18: ZeroDivisionError: .*, at sample 20 of split 'tr"),
        (
            "), at % 3",
            ")",
            r"own.py:18: split 'train': sample 0 must be \(input, target\), got Ten",
        ),
        ("Stream(self.count", "Stream(-1", "own.py: ValueError: .*|own.py: .*length"),
    ],
)
def test_a_wrong_sample_is_told_with_its_number_and_line(
    folder: Path, old: str, new: str, message: str
) -> None:
    assert CODE.count(old) == 1
    text = CODE.replace(old, new).replace("list(self.rows())[:7]", "[([0.0, 1.0, 2.0], 1)]")
    (folder / "own.py").write_text(text)
    with pytest.raises((ErrorGroup, GradcliError)) as caught:
        load(folder / "it.yaml")
    error = caught.value
    [told] = error.errors if isinstance(error, ErrorGroup) else [error]
    assert re.search(message, told.message), told.message
    assert list((folder / "cache" / "gradcli").glob("own-*")) == []


def test_an_array_over_a_mapped_file_is_not_copied(folder: Path) -> None:
    numbers = pytest.importorskip("numpy")
    numbers.save(folder / "x.npy", numbers.arange(120, dtype="f4").reshape(40, 3))
    (folder / "y.bin").write_bytes(bytes(at % 3 for at in range(40)))
    (folder / "own.py").write_text(CODE[: CODE.index("    def splits")] + MAPPED)
    config = load(folder / "it.yaml")
    outline = config.data.outline(config.facts)
    assert config.facts.sizes == {"train": 30, "val": 10}
    split = build(config).dataset.splits["val"]
    assert split.inputs[0].tolist() == [90.0, 91.0, 92.0]  # type: ignore[attr-defined]
    storage = outline["train"].inputs.array.storage  # type: ignore[attr-defined]
    assert (storage.nbytes, storage.resident) == (360, 0)


@pytest.mark.parametrize("way", ["cut off", "overwritten"])
def test_a_file_that_own_code_has_mapped_is_looked_after(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(own_mapping, "_watched", {})
    numbers = pytest.importorskip("numpy", reason="NumPy's memmap says what file it is")
    numbers.save(folder / "x.npy", numpy_rows(numbers))
    (folder / "y.bin").write_bytes(bytes(at % 3 for at in range(4000)))
    (folder / "own.py").write_text(CODE[: CODE.index("    def splits")] + MAPPED)
    dataset = build(load(folder / "it.yaml")).dataset
    inputs = dataset.splits["train"].inputs  # type: ignore[attr-defined]
    own_mapping.check_watched(closely=True)
    with (folder / "x.npy").open("r+b") as file:
        if way == "cut off":
            file.truncate(128)
            assert inputs[29].tolist() == [0.0] * 3
        else:
            file.seek(200)
            file.write(b"1")
    with pytest.raises(DataError, match=r"x\.npy' was changed while it was in use"):
        own_mapping.check_watched(closely=True)


def test_memory_of_own_code_is_looked_after_as_long_as_it_is_there(folder: Path) -> None:
    with (folder / "numbers.bin").open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    number = id(memory)
    own_mapping.watch(memory, None)
    own_mapping.watch(mmap.mmap(-1, 100), None)  # of no file
    assert number in own_mapping._watched
    del memory
    assert number not in own_mapping._watched


def numpy_rows(numbers: Any) -> Any:
    return numbers.arange(12000, dtype="f4").reshape(4000, 3)
