"""Configs: spoilt as text, as bytes, as trees and by overrides."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from parsing import Files, Parser, WrongAnswerError
from spoiling import VALUES, spoil_bytes, spoil_text, spoil_tree

from gradcli.config.load import Config, load

ROOT = Path(__file__).resolve().parents[2]
PIECES = (
    "{", "}", "[", "]", ":", ": ", "- ", ",", "&a ", "*a", "!!", "!x ", "<<: ", "'", '"', "|", ">",
    "#", "%", "@", "`", "\t", "\n", "\r", "\x00", "\x85", "\ufeff", "é", "$", "$data.", "$vars.a",
    "null", "~", "true", "no", ".nan", ".inf", "-", "1e400", "0x", "017", "9" * 400, "-1", "0",
    "---\n", "...\n", "? ", "extends: .", "extends: config.yaml", "name: ", "vars: {a: 1}\n",
    "in: ", "id: ", "repeat: {times: 3, layers: [relu]}", "\\ud800", "blocks: {b: [relu]}\n",
    "residual: [relu]",
)  # fmt: skip
MORE = (
    "$data.classes",
    "relu",
    "5%",
    "",
    {"name": None},
    {"name": []},
    {"a.b": 1},
    "mean",
    [1, -1],
)
OVERRIDES = (
    "optim.lr=0.1", "model.head.out=10", "train.batch=5", "optim=adam", "data.classes=3",
    "train.ema=0.9", "schedule={name: step, every: 2}", "metrics=[accuracy]",
    "train.early_stop.metric=val.loss",
)  # fmt: skip


class ConfigFile(Parser):
    """`config.yaml`, and in `overrides` a `-s` a line."""

    @cached_property
    def _texts(self) -> list[str]:
        (self.folder / "table.csv").write_text(
            "n,c\n" + "".join(f"{i},{i % 3}\n" for i in range(40))
        )
        (self.folder / "datasets").symlink_to(ROOT / "datasets")
        shipped = [
            *sorted((ROOT / "configs").glob("*.yaml")),
            ROOT / "configs/long/shakespeare_gpt.yaml",
        ]
        texts = [path.read_text(encoding="utf-8") for path in shipped]
        return [BASE, *(re.sub(r"(\.\./)+datasets", "datasets", text) for text in texts)]

    @cached_property
    def _trees(self) -> list[Any]:
        return [self._load({"config.yaml": text.encode()}).resolved for text in self._texts]

    def right(self) -> Sequence[Files]:
        overridden = {"config.yaml": BASE.encode(), "overrides": b"optim.lr=0.1"}
        trees = [{"config.yaml": json.dumps(tree).encode()} for tree in self._trees]
        return [*({"config.yaml": text.encode()} for text in self._texts), *trees, overridden]

    def spoilt(self, rng: random.Random) -> Files:
        way, number = rng.random(), rng.choice((0, rng.randrange(len(self._texts))))
        text = self._texts[number]
        if way < 0.4:
            return {"config.yaml": spoil_text(text, rng, PIECES).encode("utf-8", "surrogatepass")}
        if way < 0.5:
            return {"config.yaml": spoil_bytes(text.encode(), rng)}
        if way < 0.85:
            tree = spoil_tree(self._trees[number], rng, (*VALUES, *MORE))
            return {"config.yaml": json.dumps(tree).encode()}
        lines = [spoil_text(rng.choice(OVERRIDES), rng, PIECES) for _ in range(2)]
        return {
            "config.yaml": BASE.encode(),
            "overrides": "\n".join(lines).encode("utf-8", "surrogatepass"),
        }

    def read(self, files: Files) -> None:
        self._load(files)

    def _load(self, files: Files) -> Config:
        path = self.folder / "config.yaml"
        path.write_bytes(files["config.yaml"])
        lines = files.get("overrides", b"").decode("utf-8", "surrogatepass").split("\n")
        config = load(path, tuple(line for line in lines if line))
        if not isinstance(config, Config):
            raise WrongAnswerError("no config and no error")
        return config


BASE = """\
gradcli: 1
name: tiny
data: {name: csv, file: table.csv, target: c, numeric: [n]}
vars: {width: 16}
model:
  - linear: $vars.width
  - relu
  - residual: [linear: 16, dropout: 0.1]
  - linear: {out: $data.classes, name: head}
loss: cross_entropy
metrics: [accuracy, {f1: {average: macro}}]
optim: {name: sgd, lr: 0.1, momentum: 0.9}
schedule: {name: cosine, warmup: 5%}
train: {epochs: 2, batch: 10, best: val.accuracy, ema: 0.9, clip: 1.0}
expect: {test.accuracy: ">= 0.5"}
"""
