"""A dataset and a config of a few milliseconds, and the real command line in this process."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.cli.main import run
from gradcli.data import DATASETS, DataSpec, Unseen

CONFIG = """\
gradcli: 1
name: dots
data: {name: points}
model:
  - linear: 8
  - dropout: 0.2
  - linear: $data.classes
loss: cross_entropy
metrics: [accuracy]
optim: {name: adam, lr: 0.05}
train: {epochs: 3, batch: 8, seed: 5, best: val.accuracy, log_every: 1}
"""


def _point(index: int) -> list[float]:
    digest = hashlib.sha256(str(index).encode()).digest()
    return [digest[0] / 128 - 1, digest[1] / 128 - 1]


@dataclass(frozen=True)
class PointsSplit:
    """`size` points from the number `first` on; the class is the sign of x."""

    first: int
    size: int

    def batch(self, indices: Any) -> tuple[Any, Any]:
        points = [_point(self.first + index) for index in range(self.size)]
        labels = [int(point[0] > 0) for point in points]
        inputs = engine.tensor(points, dtype=engine.float32)
        targets = engine.tensor(labels, dtype=engine.int64)
        return inputs.index_select(0, indices), targets.index_select(0, indices)


@dataclass(frozen=True)
class PointsData:
    source: Any
    facts: DataSpec
    splits: dict[str, PointsSplit]
    sha256: dict[str, str]
    state: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Points:
    """The YAML keys of `data: {name: points}`."""

    train: int = 42

    def locate(self, root: Path) -> Points:
        return self

    def facts(self) -> DataSpec:
        return DataSpec(
            input=(2,),
            input_kind="float",
            target=(),
            classes=2,
            vocab=None,
            labels=("left", "right"),
            sizes={"train": self.train, "val": 20, "test": 12},
        )

    def outline(self, facts: DataSpec) -> dict[str, PointsSplit]:
        return self.load().splits

    def load(self) -> PointsData:
        splits = {
            "train": PointsSplit(0, self.train),
            "val": PointsSplit(1000, 20),
            "test": PointsSplit(2000, 12),
        }
        return PointsData(self, self.facts(), splits, {"points": VERSION["sha256"]})

    def new_inputs(self, path: Path, facts: Any) -> Unseen:
        rows = [[float(cell) for cell in line.split()] for line in path.read_text().splitlines()]
        names = [f"line {n + 1}" for n in range(len(rows))]
        return Unseen(engine.tensor(rows, dtype=engine.float32), names, range(len(rows)))


VERSION = {"sha256": "00"}


@dataclass
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture
def gradcli(tmp_path, monkeypatch, capfd) -> Callable[..., Ended]:
    """`gradcli("train", "dots.yaml")`, in a folder that holds dots.yaml."""
    monkeypatch.setitem(DATASETS, "points", Points)
    monkeypatch.setitem(VERSION, "sha256", "00")
    monkeypatch.chdir(tmp_path)
    Path("dots.yaml").write_text(CONFIG)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        code = run(list(arguments))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ended(code, out, err)

    return call


def only_run() -> Path:
    """The one run of this folder."""
    (found,) = Path("runs/dots").iterdir()
    return found


if __name__ == "__main__":
    DATASETS["points"] = Points
    sys.exit(run(sys.argv[1:]))
