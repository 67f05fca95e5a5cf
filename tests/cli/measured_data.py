"""A dataset that is always prepared: lines of two numbers and a class, in one file.

As a script: `measured_data.py CONFIG`'s command line, or `prepare FILE CACHE`, for a process to be
killed; that prints "begun" once arrays are being written and "done" behind the rename.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradcli.cli.main import run
from gradcli.data import DATASETS, DataFacts, DataSpec, LoadedData
from gradcli.data.prepared.cache import cache_folder
from gradcli.data.prepared.identity import sha256_of
from gradcli.data.prepared.sets import PreparedSet, Recipe, prepared
from gradcli.data.prepared.writer import Writer
from gradcli.data.samples import Samples, outlined

CONFIG = """\
gradcli: 1
name: dots
data: {name: measured, file: rows.txt, cache: cache}
model: [linear: 8, relu, linear: $data.classes]
loss: cross_entropy
metrics: [accuracy]
optim: {name: adam, lr: 0.05}
train: {epochs: 1, batch: 8, seed: 5}
"""
ROWS = 400


def write_rows(path: Path, rows: int = ROWS) -> None:
    path.write_text("".join(f"{row % 17} {row % 23} {row % 2}\n" for row in range(rows)))


@dataclass(frozen=True)
class Measured:
    """The YAML keys of `data: {name: measured}`."""

    file: str
    cache: str | None = None

    PATH_KEYS = ("file", "cache")

    def locate(self, root: Path) -> Measured:
        cache = None if self.cache is None else str((root / self.cache).absolute())
        return replace(self, file=str((root / self.file).absolute()), cache=cache)

    def opened(self, write: Any = None) -> PreparedSet:
        cache, path = cache_folder(self.cache), Path(self.file)
        recipe = Recipe("measured", 1, {}, {"train": (path, sha256_of(path, cache=cache))})
        return prepared(recipe, write or self.write, cache)

    def write(self, writer: Writer) -> Mapping[str, Any]:
        lines = Path(self.file).read_text().splitlines()
        inputs, targets = writer.array("inputs", "float32", (2,)), writer.array("targets", "int64")
        watched = writer.progress(len(lines), "row")
        for line in lines:
            x, y, label = line.split()
            inputs.append(array("f", [float(x), float(y)]))
            targets.append(array("q", [int(label)]))
            watched.advance(1)
        return {"rows": len(lines), "classes": 2}

    def facts(self) -> DataSpec:
        known = self.opened().facts
        return DataSpec((2,), "float", (), known["classes"], None, (), {"train": known["rows"]})

    def outline(self, facts: DataSpec) -> Mapping[str, Samples]:
        return outlined(facts, "float32", "int64", 1.0, 0.0, 1.0)

    def load(self) -> LoadedData:
        one = self.opened()
        facts = self.facts()
        splits: Any = {"train": Samples(one.tensor("inputs"), one.tensor("targets"))}
        data_facts = DataFacts.of(facts, stored=facts.input)
        source: Any = self
        return LoadedData(source, data_facts, splits, one.sha256, files={"train": self.file})


def _prepare(file: str, cache: str) -> None:
    source = Measured(file, cache)

    def write(writer: Writer) -> Mapping[str, Any]:
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        return source.write(writer)

    one = source.opened(write)
    sys.stdout.write(f"done {(one.tensor('inputs') * 3).sum().item()}\n")


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        _prepare(*sys.argv[2:])
    else:
        DATASETS["measured"] = Measured  # type: ignore[index]
        sys.exit(run(sys.argv[1:]))
