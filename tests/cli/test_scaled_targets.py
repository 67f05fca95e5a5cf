"""A regression on dollars: as good as on targets scaled by hand, in dollars throughout."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from points import gradcli

__all__ = ["gradcli"]

CONFIG = """\
gradcli: 1
name: houses
data: {name: csv, file: houses.csv, target: price, task: regression,
  numeric: [area, rooms, year], category: [town, heating], split: {train: 1600, val: 400}}
model: [linear: 32, relu, linear: 1]
loss: mse
metrics: [mae]
optim: {name: adam, lr: 1e-3}
train: {epochs: 30, batch: 32, seed: 1, log_every: 10}
"""
TOWNS = {"A": 0.5, "B": -0.5, "C": 0.0, "D": 1.0}
HEATING = {"gas": 0.0, "oil": -0.3, "pump": 0.3}


def house(draw: random.Random) -> tuple[str, float]:
    """The cells of a house, and its price: 630,000 + 250,000 f(x) + noise."""
    area, rooms, year = draw.gauss(120, 40), draw.randint(1, 8), draw.uniform(1900, 2020)
    town, heating = draw.choice(list(TOWNS)), draw.choice(list(HEATING))
    worth = 0.5 * (area - 120) / 40 + 0.3 * math.sin(rooms) + ((year - 1960) / 80) ** 2
    price = 630_000 + 250_000 * (worth + TOWNS[town] + HEATING[heating]) + draw.gauss(0, 15_000)
    return f"{area:.2f},{rooms},{year:.0f},{town},{heating}", price


def written(path: str, rows: list[tuple[str, float]]) -> None:
    lines = [f"{cells},{price!r}\n" for cells, price in rows]
    Path(path).write_text("area,rooms,year,town,heating,price\n" + "".join(lines))


@pytest.fixture
def houses(gradcli) -> list[tuple[str, float]]:
    """2,000 of them in houses.csv, and the config houses.yaml."""
    draw = random.Random(1)
    rows = [house(draw) for _ in range(2000)]
    written("houses.csv", rows)
    Path("houses.yaml").write_text(CONFIG)
    return rows


def test_dollars_are_learnt_as_well_as_targets_scaled_by_hand(gradcli, houses) -> None:
    prices = [price for _, price in houses]
    mean, deviation = statistics.fmean(prices), statistics.pstdev(prices)
    written("scaled.csv", [(cells, (price - mean) / deviation) for cells, price in houses])
    Path("scaled.yaml").write_text(CONFIG.replace("houses.csv", "scaled.csv"))
    none = ("-s", "data.target_scale=none")
    by_hand = gradcli("train", "scaled.yaml", *none, "--json").json["metrics"]["val.mae"]
    ended = gradcli("train", "houses.yaml", "--json")
    metrics = ended.json["metrics"]
    assert metrics["val.mae"] <= 1.1 * by_hand * deviation
    assert metrics["val.loss"] < 0.1  # of the scaled targets, whose variance is 1
    raw = gradcli("train", "houses.yaml", *none, "--json").json["metrics"]
    assert raw["val.mae"] > 10 * metrics["val.mae"]


def test_predictions_are_in_dollars_and_eval_repeats_the_figures(gradcli, houses) -> None:
    trained = gradcli("train", "houses.yaml", "--json").json
    measured = gradcli("eval", "last", "--split", "val", "--json").json["metrics"]
    assert measured == trained["metrics"]
    draw = random.Random(2)
    new = [house(draw) for _ in range(50)]
    written("new.csv", new)
    rows = gradcli("predict", "last", "new.csv", "--json").json["predictions"]
    errors = [
        abs(row["values"]["price"] - price) for row, (_, price) in zip(rows, new, strict=True)
    ]
    assert statistics.fmean(errors) < 1.5 * measured["val.mae"]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_resumed_run_ends_in_the_same_bits(gradcli, houses, precision: str) -> None:
    ways = ("-s", "train.epochs=2", "-s", f"train.precision={precision}", "--json")
    whole = gradcli("train", "houses.yaml", *ways).json
    gradcli("train", "houses.yaml", *ways, "--max-steps", "37")
    resumed = gradcli("resume", "last", "--json").json
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    assert resumed["metrics"] == whole["metrics"]
    assert whole["metrics"]["val.mae"] < 250_000  # a bfloat16 of 630,000 is good to 2,000 alone


def test_a_run_keeps_its_scale_when_the_data_changes(gradcli, houses) -> None:
    """The weights belong to the scale that they were trained on."""
    gradcli("train", "houses.yaml", "-s", "metrics=[rmse]", "--max-steps", "100")
    first = gradcli("eval", "last", "--split", "val", "--json").json["metrics"]
    written("new.csv", houses[:3])
    before = gradcli("predict", "last", "new.csv").out
    written("houses.csv", [(cells, price / 10) for cells, price in houses])
    assert gradcli("predict", "last", "new.csv").out == before
    measured = gradcli("eval", "last", "--split", "val", "--json").json["metrics"]
    assert measured["val.rmse"] > 2 * first["val.rmse"]
    ways = ("--allow-data-change", "-s", "train.epochs=3", "--json")
    resumed = gradcli("resume", "last", *ways).json["metrics"]
    for figures in (measured, resumed):
        assert deviation(figures) == pytest.approx(deviation(first), rel=1e-4)


def deviation(figures: dict[str, float]) -> float:
    """The dollars that stand for 1 in the loss."""
    return figures["val.rmse"] / math.sqrt(figures["val.loss"])


TWO = """\
gradcli: 1
name: two
data: {name: npy, inputs: x.npy, targets: y.npy, split: {train: 300, val: 100}}
model: [linear: 16, tanh, linear: 2]
loss: l1
metrics: [mae]
optim: {name: adam, lr: 1e-2}
train: {epochs: 20, batch: 32, seed: 1}
"""


def test_each_column_has_a_scale_of_its_own(gradcli) -> None:
    numpy: Any = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(1)
    x = draw.normal(size=(400, 3)).astype("float32")
    y = numpy.stack([1e6 + 1e5 * x[:, 0], 0.01 * x[:, 1] - 3], 1).astype("float32")
    numpy.save("x.npy", x)
    numpy.save("y.npy", y)
    Path("two.yaml").write_text(TWO)
    assert gradcli("train", "two.yaml", "--json").json["metrics"]["val.loss"] < 0.2
    rows = gradcli("predict", "last", "x.npy", "--json").json["predictions"]
    values = numpy.array([list(row["values"].values()) for row in rows])
    assert numpy.all(numpy.abs(values - y).mean(0) < 0.2 * y.std(0))


def test_the_default_stands_in_resolved_yaml(gradcli, houses) -> None:
    gradcli("train", "houses.yaml", "--max-steps", "1")
    [resolved] = Path("runs/houses").glob("*/resolved.yaml")
    assert "  target_scale: standard\n" in resolved.read_text()
    ended = gradcli("train", str(resolved), "--max-steps", "1", "-s", "train.best=val.loss")
    assert "W106" in ended.err


def test_targets_too_alike_for_float32_are_named(gradcli, houses) -> None:
    written("houses.csv", [(cells, 1.7e9 + price) for cells, price in houses])
    assert "warning: target" not in gradcli("train", "houses.yaml", "--max-steps", "1").err
    written("houses.csv", [(cells, 1.70063e9 + price / 1e6) for cells, price in houses])
    ended = gradcli("train", "houses.yaml", "--max-steps", "1")
    assert "warning: target 'price' lies around 1.70063e+09, where float32 knows" in ended.err
    assert "numbers to 2e+02 only, too coarse for what it differs by" in ended.err
