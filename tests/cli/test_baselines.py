"""Every summary has the baseline beside the figures, and names what does not beat it."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from points import gradcli

from gradcli.data import targets as target_facts

__all__ = ["gradcli"]

HEAD = "gradcli: 1\nname: base\n"
TRAIN = "optim: {name: adam, lr: 0.05}\ntrain: {epochs: 6, batch: 16, seed: 1}\n"
VALUES = f"""{HEAD}\
data: {{name: csv, file: values.csv, target: y, task: regression, numeric: [x]}}
model: [linear: 8, relu, linear: 1]
loss: mse
metrics: [mae, rmse, r2]
{TRAIN}"""
CLASSES = f"""{HEAD}\
data: {{name: csv, file: classes.csv, target: kind, numeric: [x]}}
model: [linear: $data.classes]
loss: cross_entropy
metrics: [accuracy]
{TRAIN}"""
TEXT = f"""{HEAD}\
data: {{name: text, file: words.txt, context: 8}}
model: [embed: 8, linear: $data.vocab]
loss: cross_entropy
metrics: [perplexity, bits_per_character]
{TRAIN}"""


@pytest.fixture
def trained(gradcli) -> Any:
    """Trains a config, with what follows on the command line; its splits as `split` cuts them."""

    def call(config: str, *arguments: str) -> Any:
        Path("base.yaml").write_text(config)
        ended = gradcli("train", "base.yaml", "--json", *arguments)
        assert ended.code == 0, ended.err
        return ended.json

    Path("values.csv").write_text("x,y\n" + "".join(f"{i % 37},{price(i)}\n" for i in range(300)))
    rows = "".join(f"{i % 37},{'high' if i % 37 > 25 else 'low'}\n" for i in range(300))
    Path("classes.csv").write_text(f"x,kind\n{rows}")
    Path("words.txt").write_text("the cat sat on the mat, and the dog too\n" * 30)
    return call


def price(i: int) -> float:
    return 5000.0 + 100.0 * (i % 37)


def loaded() -> Any:
    """The data of base.yaml."""
    from gradcli.config import load

    return load(Path("base.yaml")).data.load()


def targets(split: Any) -> list[float]:
    return split.targets.reshape(-1).tolist()


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_of_a_regression_it_is_the_mean(trained, scale: str) -> None:
    found = trained(VALUES, "-s", f"data.target_scale={scale}")["baseline"]
    assert found["answer"] == "the mean of the training targets"
    splits = {name: targets(split) for name, split in loaded().splits.items()}
    mean, deviation = statistics.fmean(splits["train"]), statistics.pstdev(splits["train"])
    for name in ("val", "test"):
        errors = [abs(value - mean) for value in splits[name]]
        square = statistics.fmean(error**2 for error in errors)
        figures = {key: found["metrics"][f"{name}.{key}"] for key in ("mae", "rmse", "r2", "loss")}
        unit = deviation if scale == "standard" else 1.0
        assert figures == pytest.approx(
            {
                "mae": statistics.fmean(errors),
                "rmse": math.sqrt(square),
                "r2": 1 - square / statistics.pvariance(splits[name]),
                "loss": square / unit**2,
            },
            rel=1e-4,
        )


def test_of_classes_it_is_the_commonest_one_and_their_shares(trained) -> None:
    found = trained(CLASSES)["baseline"]
    assert found["answer"] == "the shares of the classes in training; the commonest is 'low'"
    splits = {name: targets(split) for name, split in loaded().splits.items()}
    counts = Counter(splits["train"])  # 'high' is 0, 'low' 1
    shares = [(counts[kind] + 1) / (len(splits["train"]) + 2) for kind in (0, 1)]
    labels = splits["val"]
    assert found["metrics"]["val.accuracy"] == pytest.approx(labels.count(1) / len(labels))
    loss = -statistics.fmean(math.log(shares[int(label)]) for label in labels)
    assert found["metrics"]["val.loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("loss", ["bce_with_logits", "bce"])
def test_one_output_for_two_classes_has_the_same_baseline(trained, loss: str) -> None:
    two = trained(CLASSES)["baseline"]["metrics"]
    end = "linear: 1" if loss == "bce_with_logits" else "linear: 1, sigmoid"
    config = CLASSES.replace("linear: $data.classes", end).replace("cross_entropy", loss)
    assert trained(config)["baseline"]["metrics"] == pytest.approx(two, rel=1e-4)


def test_of_text_it_is_the_unigram(trained) -> None:
    found = trained(TEXT)["baseline"]
    assert found["answer"] == "unigram: the shares of the tokens in training"
    data = loaded()
    tokens = data.splits["train"].tokens.tolist()
    counts, kinds = Counter(tokens), data.facts.vocab
    split = data.splits["val"]
    following = split.tokens.tolist()[1 : 1 + 8 * split.size]
    shares = {token: (counts[token] + 1) / (len(tokens) + kinds) for token in range(kinds)}
    loss = -statistics.fmean(math.log(shares[token]) for token in following)
    metrics = found["metrics"]
    assert metrics["val.loss"] == pytest.approx(loss, rel=1e-5)
    assert metrics["val.perplexity"] == pytest.approx(math.exp(loss), rel=1e-4)
    assert metrics["val.bits_per_character"] == pytest.approx(loss / math.log(2), rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "end"),
    [("kl", "log_softmax"), ("bce_with_logits", "identity"), ("poisson_nll", "identity")],
)
def test_losses_of_probabilities_and_counts_see_the_mean(trained, loss: str, end: str) -> None:
    numpy: Any = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(1)
    y = draw.dirichlet([1.0, 2.0, 3.0], 200).astype("float32")
    numpy.savez("a.npz", x=draw.normal(size=(200, 4)).astype("float32"), y=y)
    data = "data: {name: npz, file: a.npz, inputs: x, targets: y, split: {train: 150, val: 50}}\n"
    config = f"{HEAD}{data}model: [linear: 3, {end}]\nloss: {loss}\nmetrics: [mae]\n{TRAIN}"
    metrics = trained(config)["baseline"]["metrics"]
    mean = y[:150].mean(0)
    assert metrics["val.mae"] == pytest.approx(abs(y[150:] - mean).mean(), rel=1e-4)
    t = y[150:]
    losses = {
        "kl": (t * (numpy.log(t) - numpy.log(mean))).sum() / 50,
        "bce_with_logits": -(t * numpy.log(mean) + (1 - t) * numpy.log(1 - mean)).mean(),
        "poisson_nll": (mean - t * numpy.log(mean)).mean(),
    }
    assert metrics["val.loss"] == pytest.approx(losses[loss], rel=1e-4)


def test_of_pictures_as_targets_it_is_the_mean_picture(trained) -> None:
    numpy: Any = pytest.importorskip("numpy")
    x = numpy.random.default_rng(1).integers(0, 255, (60, 4, 4)).astype("uint8")
    numpy.savez("a.npz", x=x)
    data = (
        "{name: npz, file: a.npz, inputs: x, target: input, mean: 0.5, split: {train: 40, val: 20}}"
    )
    model = "[flatten, linear: 16, reshape: [1, 4, 4]]"
    config = f"{HEAD}data: {data}\nmodel: {model}\nloss: mse\nmetrics: [mae]\n{TRAIN}"
    metrics = trained(config)["baseline"]["metrics"]
    shown = x / 255 - 0.5
    error = shown[40:] - shown[:40].mean(0)
    assert metrics["val.mae"] == pytest.approx(abs(error).mean(), rel=1e-4)
    assert metrics["val.loss"] == pytest.approx((error**2).mean(), rel=1e-4)


def test_what_does_not_beat_it_is_named_and_a_good_model_is_not(gradcli, trained) -> None:
    Path("base.yaml").write_text(VALUES)
    raw = gradcli("train", "base.yaml", "-s", "data.target_scale=none", "-s", "optim.lr=1e-4")
    [line] = [one for one in raw.err.splitlines() if "beat the baseline" in one]
    assert line.startswith("warning: the model does not beat the baseline: val.loss ")
    assert "val.mae" in line
    assert "val.r2" in line
    [shown] = [one for one in raw.out.splitlines() if one.startswith("baseline: ")]
    assert shown.endswith("(the mean of the training targets)")
    good = gradcli("train", "base.yaml", "-s", "train.epochs=40")
    assert "beat the baseline" not in good.err
    assert "\nbaseline: val.loss " in good.out
    assert trained(VALUES, "-s", "train.epochs=40")["baseline"]["unbeaten"] == []


def test_eval_has_it_too_and_a_finished_run_has_it_again(gradcli, trained) -> None:
    first = trained(CLASSES)
    again = gradcli("resume", "last", "--json").json
    assert again["baseline"] == first["baseline"]
    status = json.loads(next(Path("runs/base").glob("*/status.json")).read_text())
    assert status["baseline"] == first["baseline"]
    measured = gradcli("eval", "last", "--split", "val", "--json").json["baseline"]
    assert measured["answer"] == first["baseline"]["answer"]
    of_val = {name: value for name, value in first["baseline"]["metrics"].items() if "val." in name}
    assert measured["metrics"] == of_val
    assert "\nbaseline: val.loss " in gradcli("eval", "last", "--split", "val").out
    text = "x,kind\n" + "30,high\n1,low\n2,low\n"
    Path("new.csv").write_text(text)
    for name in ("classes.csv", "base.yaml"):
        Path(name).unlink()
    new = gradcli("eval", "last", "--data", "new.csv", "--json").json["baseline"]
    assert new["metrics"]["data.accuracy"] == pytest.approx(2 / 3)


def test_a_class_that_a_split_lacks_is_named(gradcli) -> None:
    numpy: Any = pytest.importorskip("numpy")
    x = numpy.zeros((60, 2), "float32")
    y = numpy.array([0, 1] * 20 + [0, 2] * 5 + [1, 1] * 5)
    numpy.savez("a.npz", x=x, y=y)
    data = (
        "{name: npz, file: a.npz, inputs: x, targets: y, classes: 4, split: {train: 40, val: 20}}"
    )
    model = "model: [linear: $data.classes]\nloss: cross_entropy\nmetrics: [accuracy]\n"
    Path("base.yaml").write_text(f"{HEAD}data: {data}\n{model}{TRAIN}")
    ended = gradcli("train", "base.yaml", "--json")
    assert ended.json["absent_classes"] == {"train": ["2", "3"], "val": ["3"]}
    assert "warning: the split 'train' has no sample of 2 of 4 classes: '2', '3'" in ended.err
    assert "warning: the split 'val' has no sample of 1 of 4 classes: '3'" in ended.err
    assert math.isfinite(ended.json["baseline"]["metrics"]["val.loss"])
    measured = gradcli("eval", "last", "--split", "val", "--json")
    assert measured.json["absent_classes"] == {"val": ["3"]}
    assert "warning: the split 'val'" in measured.err


def test_classes_of_a_split_are_counted_once(gradcli, monkeypatch):
    counted = []
    whole = target_facts.class_counts
    monkeypatch.setattr(
        target_facts,
        "class_counts",
        lambda split, kinds: counted.append(split) or whole(split, kinds),
    )
    assert gradcli("train", "dots.yaml").code == 0
    assert len(counted) == 3  # train, val and test
    counted.clear()
    assert gradcli("eval", "last").code == 0
    assert len(counted) <= 3
