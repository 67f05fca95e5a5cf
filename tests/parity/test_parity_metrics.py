"""Every metric, through an evaluation in batches, against scikit-learn on 200 random cases each.

Scores have ties, classes are absent, and splits have one sample. Samples have no weights in
gradcli; the weights of classes that some of these losses have must change no metric.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")
theirs = pytest.importorskip(
    "sklearn.metrics", reason="parity needs the extra: pip install '.[parity]'"
)

import numpy as np  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.config.losses import cross_entropy, mse  # noqa: E402
from gradcli.data.samples import Samples  # noqa: E402
from gradcli.engine import nn  # noqa: E402
from gradcli.train.evaluate import Evaluation  # noqa: E402
from gradcli.train.job import TrainSettings  # noqa: E402
from gradcli.train.metrics import METRICS, Metric  # noqa: E402

pytestmark = pytest.mark.parity

CASES = range(200)
AVERAGES = ("macro", "micro", "weighted", "none")
Agree = Callable[..., None]


def measured(
    outputs: Any, targets: Any, metrics: Mapping[str, Metric], loss: Any, batch: int, capture: bool
) -> dict[str, Any]:
    """The figures as `eval` gives them, of a model whose outputs are its inputs."""
    split = Samples(engine.from_dlpack(outputs).clone(), engine.from_dlpack(targets).clone())
    job: Any = SimpleNamespace(
        model=nn.Identity(),
        loss=loss.make(),
        postprocess=lambda outputs: outputs,
        metrics=metrics,
        settings=TrainSettings(batch=batch, steps=1, capture=capture),
    )
    evaluation = Evaluation(job, split, "val")
    figures = {**evaluation.run(), **evaluation.tables}
    return {name.partition(".")[2]: figure for name, figure in figures.items()}


def softmax(scores: Any) -> Any:
    """Probabilities with as many digits as numpy has."""
    powers = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def of_labels(scores: Any, labels: Any, classes: int, k: int) -> dict[str, Any]:
    """scikit-learn's figure for each metric of labels."""
    every, answers, exact = range(classes), scores.argmax(1), softmax(scores)
    # Of two classes scikit-learn takes one score, which has no ties; a third that is never near.
    three = np.c_[scores, np.full(len(scores), -1e9)]
    # What ranks is compared with itself: the same probabilities, rounded in the same way.
    ranks = np.from_dlpack(engine.from_dlpack(scores).clone().softmax(1))
    nats = theirs.log_loss(labels, exact, labels=every)
    two = classes == 2
    figures = {
        "accuracy": theirs.accuracy_score(labels, answers),
        "top_k": theirs.top_k_accuracy_score(labels, three, k=k, labels=range(classes + 1)),
        "log_loss": nats,
        "perplexity": math.exp(nats),
        "bits_per_character": nats / math.log(2),
        "bits_per_byte": nats / math.log(2),  # each label a byte
        "brier": theirs.brier_score_loss(labels, exact[:, 1] if two else exact, labels=every),
        "roc_auc": theirs.roc_auc_score(labels, scores[:, 1] - scores[:, 0])
        if two
        else theirs.roc_auc_score(labels, ranks, multi_class="ovr", labels=every),
        "confusion": theirs.confusion_matrix(labels, answers, labels=every).tolist(),
    }
    for name in ("precision", "recall", "f1"):
        function = getattr(theirs, f"{name}_score")
        for average in (*AVERAGES, *(["binary"] if two else [])):
            named = {"average": None, "labels": every} if average == "none" else {}
            figure = function(labels, answers, **{"average": average, **named})
            figures[f"{name}-{average}"] = figure.tolist() if average == "none" else figure
    return figures


def ours_of(name: str, k: int) -> Metric:
    kind, _, average = name.partition("-")
    keys: dict[str, Any] = {"k": k} if kind == "top_k" else {"average": average} if average else {}
    return METRICS[kind](**keys)


def agrees(agree: Agree, name: str, found: Any, expected: Any, kind: Any) -> None:
    agree(
        f"metrics.{name.partition('-')[0]}",
        engine.tensor(found, dtype=getattr(engine, str(kind).removeprefix("torch."))),
        torch.tensor(expected, dtype=kind),
    )


COUNTED = {"accuracy", "top_k", "precision", "recall", "f1", "roc_auc"}


def kind_of(name: str) -> Any:
    """Sums of floats are rounded to 32 bits; the rest is exact to the end."""
    if name == "confusion":
        return torch.int64
    return torch.float64 if name.partition("-")[0] in COUNTED else torch.float32


@pytest.mark.parametrize("case", CASES)
def test_metrics_of_labels_are_scikit_learn_s(agree: Agree, case: int) -> None:
    draw = np.random.default_rng(case)
    size, classes = int(draw.integers(1, 60)) if case % 8 else 1, int(draw.integers(2, 7))
    k = int(draw.integers(1, classes))
    present = draw.permutation(classes)[: draw.integers(1, classes + 1)]
    labels = draw.choice(present, size)
    scores = draw.normal(0, 3, (size, classes)).astype(np.float32)
    if case % 2:
        scores = scores.round()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are absent
        expected = of_labels(scores, labels, classes, k)
    metrics = {name: ours_of(name, k) for name in expected}
    loss = cross_entropy(weight=tuple(map(float, range(1, classes + 1))) if case % 3 else ())
    batch = int(draw.integers(1, size + 1))
    found = measured(scores, labels, metrics, loss, batch, capture=case % 10 == 0)
    for name, figure in expected.items():
        agrees(agree, name, found[name], figure, kind_of(name))


@pytest.mark.parametrize("case", CASES)
def test_metrics_of_values_are_scikit_learn_s(agree: Agree, case: int) -> None:
    draw = np.random.default_rng(1000 + case)
    size, columns = int(draw.integers(1, 60)) if case % 8 else 1, 1 if case % 3 else 3
    targets = draw.normal(0, 2, (size, columns)).astype(np.float32)
    outputs = (targets + draw.normal(0, 1, (size, columns))).astype(np.float32)
    if case % 2:
        targets, outputs = targets.round(), outputs.round()  # ties, zeros, perfect answers
    if case % 5 == 0:
        targets[:, 0] = targets[0, 0]  # a column of equal targets
    if case % 7 == 0:
        targets, outputs = targets + np.float32(630_000), outputs + np.float32(630_000)
    wide = targets.astype(np.float64), outputs.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one sample
        expected = {
            "mse": theirs.mean_squared_error(*wide),
            "rmse": math.sqrt(theirs.mean_squared_error(*wide)),
            "mae": theirs.mean_absolute_error(*wide),
            "mape": theirs.mean_absolute_percentage_error(*wide),
            "median_error": theirs.median_absolute_error(*wide),
            "r2": theirs.r2_score(*wide),
        }
    if columns == 1:
        assert expected["rmse"] == theirs.root_mean_squared_error(*wide)
    metrics = {name: METRICS[name]() for name in expected}
    batch = int(draw.integers(1, size + 1))
    found = measured(outputs, targets, metrics, mse(), batch, capture=case % 10 == 0)
    for name, figure in expected.items():
        agrees(agree, name, found[name], float(figure), kind_of(name))


def test_every_metric_is_compared() -> None:
    labels = of_labels(np.eye(3, dtype=np.float32), np.array([0, 1, 2]), 3, 1)
    values = {name for name in METRICS if METRICS[name].targets == "values"}
    assert {name.partition("-")[0] for name in labels} | values == set(METRICS)
