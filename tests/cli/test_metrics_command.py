"""Metrics through the command line: in the log, in `eval`, in `expect`, `best`, `early_stop`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from points import gradcli, only_run

from gradcli.train.metrics import METRICS

__all__ = ["gradcli"]

LINE = """\
gradcli: 1
name: dots
data: {name: csv, file: line.csv, target: y, numeric: [x], task: regression, seed: 1}
model: [{linear: 1}]
loss: mse
optim: {name: sgd, lr: 0.1}
train: {epochs: 6, batch: 8}
"""
TEXT = """\
gradcli: 1
name: dots
data: {name: text, file: text.txt, context: 8, split: {train: 60%, val: 20%, test: 20%}}
model: [{embed: 4}, {linear: $data.vocab}]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 6, batch: 8}
"""
OF_VALUES = ["mse", "rmse", "mae", "mape", "median_error", "r2"]
OF_TEXT = ["perplexity", "bits_per_character", "bits_per_byte"]
SCALARS = ["precision", "recall", "f1", "roc_auc", "log_loss", "brier", {"top_k": 1}]
TABLES = ["confusion", {"f1": {"average": "none", "name": "each"}}]


def names(metrics: list[Any]) -> list[str]:
    return [one if isinstance(one, str) else next(iter(one)) for one in metrics]


def events(run: Path, event: str) -> list[dict[str, Any]]:
    records = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [record for record in records if record["event"] == event]


def train(gradcli, *more: str, metrics: list[Any] = SCALARS) -> Any:
    """Dots, a line or a text, as the first metric asks for."""
    [first, *_] = names(metrics)
    file = "text.yaml" if first in OF_TEXT else "line.yaml" if first in OF_VALUES else "dots.yaml"
    Path("line.yaml").write_text(LINE)
    Path("line.csv").write_text("x,y\n" + "".join(f"{x},{x * x + 1}\n" for x in range(40)))
    Path("text.yaml").write_text(TEXT)
    Path("text.txt").write_text("to be or not to be, that is the question. " * 9)
    return gradcli("train", file, "-s", f"metrics={json.dumps(metrics)}", *more)


def test_every_figure_stands_in_the_log_and_in_eval(gradcli) -> None:
    metrics = ["accuracy", *SCALARS, *TABLES]
    assert train(gradcli, metrics=metrics).code == 0
    ended = gradcli("eval", "last", "--json", "--checkpoint", "last", "--split", "val").json
    last = events(only_run(), "eval")[-1]
    for name in ["accuracy", *names(SCALARS)]:
        assert ended["metrics"][f"val.{name}"] == last[f"val.{name}"]
    matrix = ended["tables"]["val.confusion"]
    assert matrix == last["val.confusion"]
    assert sum(map(sum, matrix)) == 20
    right = (matrix[0][0] + matrix[1][1]) / 20
    assert ended["metrics"]["val.accuracy"] == ended["metrics"]["val.top_k"] == right
    assert ended["tables"]["val.each"][1] == ended["metrics"]["val.f1"]
    assert events(only_run(), "test")[0]["test.confusion"]


def test_eval_shows_a_matrix_by_rows(gradcli) -> None:
    assert train(gradcli, "-s", "train.best=null", metrics=TABLES).code == 0
    lines = gradcli("eval", "last").out.splitlines()
    printed = gradcli("eval", "last", "--json").json
    matrix = printed["tables"]["test.confusion"]
    assert printed["classes"] == ["left", "right"]
    at = lines.index("test.confusion: a row for each class, a column for each answer")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["left", *map(str, matrix[0])],
        ["right", *map(str, matrix[1])],
    ]
    left, right = printed["tables"]["test.each"]
    assert lines[at + 3] == f"test.each  left {left:.4f}  right {right:.4f}"


@pytest.mark.parametrize("metrics", [OF_VALUES, OF_TEXT], ids=["values", "text"])
def test_figures_of_values_and_texts_stand_in_the_log_and_in_eval(
    gradcli, metrics: list[Any]
) -> None:
    assert train(gradcli, metrics=metrics).code == 0
    ended = gradcli("eval", "last", "--json", "--split", "val").json["metrics"]
    last = events(only_run(), "eval")[-1]
    assert {name: last[name] for name in ended} == ended
    assert len(ended) == 1 + len(metrics)


def test_bits_per_byte_divide_by_the_bytes_of_the_text(gradcli) -> None:
    Path("text.txt").write_text("äb" * 300)
    bits = {}
    for unit in ("characters", "bytes"):
        Path("text.yaml").write_text(TEXT.replace("context", f"unit: {unit}, context"))
        asked = "metrics=[bits_per_character, bits_per_byte]"
        assert gradcli("train", "text.yaml", "-s", asked).code == 0
        found = gradcli("eval", "last", "--json", "--split", "val").json["metrics"]
        bits[unit] = found["val.bits_per_byte"] / found["val.bits_per_character"]
    assert bits == {"characters": pytest.approx(2 / 3), "bytes": pytest.approx(1)}


def test_bits_per_byte_of_tokens_without_a_text_are_refused(gradcli) -> None:
    Path("tokens.bin").write_bytes(bytes(range(200)) * 4)
    data = "{name: tokens, file: tokens.bin, type: uint8, vocab: 200, context: 8}"
    Path("text.yaml").write_text(re.sub("data: .*", f"data: {data}", TEXT))
    ended = gradcli("train", "text.yaml", "-s", "metrics=[bits_per_byte]")
    assert ended.code == 2
    assert "metric 'bits_per_byte' needs the text of each token" in ended.err


EACH = ["accuracy", *SCALARS, *OF_VALUES, *OF_TEXT]


def test_each_scalar_is_tried() -> None:
    assert {*names(EACH), "confusion"} == set(METRICS)


@pytest.mark.parametrize("metric", EACH, ids=names(EACH))
def test_a_scalar_is_best_stops_early_and_is_expected(gradcli, metric: Any) -> None:
    [name] = names([metric])
    rising = METRICS[name].direction == "higher"
    ended = train(
        gradcli,
        *("-s", f"train.best=val.{name}", "-s", "train.epochs=6"),
        *("-s", f"train.early_stop={{metric: val.{name}, patience: 1, min_delta: 1e15}}"),
        *("-s", f"expect.test.{name}='{'> 1000' if rising else '< -1000'}'"),
        metrics=[metric],
    )
    assert (ended.code, f"expected test.{name} " in ended.err) == (6, True)
    assert "stopped early" in ended.err
    assert len(events(only_run(), "eval")) == 2


def test_the_best_of_a_figure_that_falls_is_the_smallest(gradcli) -> None:
    ended = train(gradcli, "--json", "-s", "train.best=val.brier", "-s", "train.epochs=6")
    figures = {record["step"]: record["val.brier"] for record in events(only_run(), "eval")}
    assert ended.json["metrics"]["val.brier"] == min(figures.values())
    assert ended.json["measured_step"] == min(figures, key=lambda step: figures[step])


def test_a_figure_that_is_not_defined_is_null(gradcli, monkeypatch) -> None:
    monkeypatch.setattr("points._point", lambda index: [0.5, index % 7 / 7])
    expected = train(gradcli, "-s", "train.best=val.roc_auc", "-s", "expect.val.roc_auc='>= 0.5'")
    assert (expected.code, "expected val.roc_auc >= 0.5, got nan" in expected.err) == (6, True)
    last = events(only_run(), "eval")[-1]
    assert (last["val.roc_auc"], last["nonfinite"]) == (None, {"val.roc_auc": "nan"})
