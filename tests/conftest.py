"""Fixtures for every part: poisoned memory, instruction sets, a data source without files."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from gradcli.engine.device import cpu

pytest_plugins = ["agreement", "once"]

BASE = """\
gradcli: 1
name: tiny
data: {name: fake}
model:
  - flatten
  - linear: 16
  - relu
  - linear: {out: $data.classes, name: head}
loss: cross_entropy
metrics: [accuracy]
optim: {name: sgd, lr: 0.1}
schedule: {name: cosine, warmup: 5%}
train: {epochs: 2, batch: 10, best: val.accuracy}
expect: {test.accuracy: ">= 0.5"}
"""

CURIOUS = """\
import gradcli
from gradcli.engine import nn

@gradcli.layer
class Curious(nn.Module):
    def __init__(self, shape):
        super().__init__()

    def forward(self, x):
        return x * float(x.abs().amax().item() > 0)
"""


def fake_source() -> type:
    """A dataset whose facts stand in the config: images, a row of numbers, text or a regression."""
    from gradcli import engine
    from gradcli.data import DataSpec, LoadedData, Split
    from gradcli.data.samples import Windows, outlined

    @dataclass(frozen=True)
    class Fake:
        kind: Literal["image", "row", "text", "values"] = "image"
        classes: int = 10
        features: int = 4
        train: int = 100
        val: int = 20

        def locate(self, root: Path) -> Fake:
            return self

        def facts(self) -> DataSpec:
            shape = {"image": (1, 28, 28), "text": (8,)}.get(self.kind, (self.features,))
            sizes = {"train": self.train, "val": self.val, "test": 20}
            return DataSpec(
                input=shape,
                input_kind="index" if self.kind == "text" else "float",
                target={"text": (8,), "values": (1,)}.get(self.kind, ()),
                classes=None if self.kind in ("text", "values") else self.classes,
                vocab=65 if self.kind == "text" else None,
                labels=(),
                sizes={split: size for split, size in sizes.items() if size},
            )

        def outline(self, facts: DataSpec) -> Mapping[str, Split]:
            if self.kind == "text":
                with engine.device("meta"):
                    tokens = engine.empty(8 * max(facts.sizes.values()) + 1, dtype=engine.int32)
                return {name: Windows(tokens[: 8 * n + 1], 8, 8) for name, n in facts.sizes.items()}
            targets = "float32" if self.kind == "values" else "int64"
            return outlined(facts, "float32", targets, 1.0, 0.0, 1.0)

        def load(self) -> LoadedData:
            raise AssertionError("checking a config reads no data")

    return Fake


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a config that may name the data `fake`; each pair replaces a text of the base."""
    from gradcli.data import DATASETS

    monkeypatch.setitem(DATASETS, "fake", fake_source())

    def write(*changes: tuple[str, str], text: str = BASE, name: str = "config.yaml") -> Path:
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def curious_code(tmp_path: Path) -> str:
    """The file of own code whose layer `curious` reads values, which no captured step may."""
    (tmp_path / "own.py").write_text(CURIOUS)
    return "own.py"


@pytest.fixture(scope="session", autouse=True)
def trust_and_caches_lie_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What trainings note of own code and prepare of data goes into folders of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def signals_are_heard() -> None:
    """Processes that tests start inherit what is ignored, as under nohup or in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(one) == signal.SIG_IGN:
            signal.signal(one, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """What a test asks for with --threads ends with it: the number holds for the whole process."""
    threads = cpu.threads()
    yield
    if cpu.threads() != threads:
        cpu.set_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def fresh_memory_is_poisoned() -> Iterator[None]:
    """Fresh memory is NaN in all tests, so that an output a kernel leaves unwritten shows."""
    cpu.fill_on_alloc(True)
    yield
    cpu.fill_on_alloc(False)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """`zone("Asia/Tokyo")` moves the machine there."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=["baseline", "avx2", "avx512", "neon"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this build and this machine have."""
    before = cpu.isa()
    if not cpu.set_isa(request.param):
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    cpu.set_isa(before)


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """Counts the bytes in use on the CPU; no earlier test's cycles are collected meanwhile."""
    gc.collect()
    gc.disable()
    yield cpu.allocated
    gc.enable()
