"""Each metric against figures worked out by hand, and states that merge as they should."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.samples import Samples
from gradcli.engine import nn
from gradcli.train.evaluate import Evaluation, MetricStates
from gradcli.train.job import TrainSettings
from gradcli.train.metrics import METRICS, Metric, Task, better, direction_of

NAN = math.nan


def figure(name: str, outputs: list[Any], targets: list[Any], *cuts: int, **keys: Any) -> Any:
    """The figure of batches that begin at the cuts, each captured alone."""
    metric: Metric = METRICS[name](**keys)
    kind = engine.int64 if metric.targets == "labels" else engine.float32
    wanted, given = engine.tensor(targets, dtype=kind), engine.tensor(outputs, dtype=engine.float32)
    merged = MetricStates({name: metric})
    for begin, end in zip((0, *cuts), (*cuts, len(targets)), strict=True):
        state = metric.state(given[begin:end], wanted[begin:end])
        stacked = {
            key: one.reshape(1, *one.shape) if isinstance(one, engine.Tensor) else one
            for key, one in state.items()
        }
        merged.add({name: stacked}, 1)
    return merged.finish()[name]


def test_accuracy_counts_the_largest_output() -> None:
    assert figure("accuracy", [[1, 2, 3], [3, 2, 1], [0, 5, 1]], [2, 0, 0]) == pytest.approx(2 / 3)


def test_accuracy_takes_classes_last_for_sequences() -> None:
    assert figure("accuracy", [[[1, 2], [2, 1]]], [[1, 1]]) == 0.5


def test_metrics_of_labels_take_classes_behind_the_batch_or_last() -> None:
    last = [[[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]]
    second = [[[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]]]
    for name, keys in (("top_k", {"k": 2}), ("log_loss", {}), ("brier", {}), ("confusion", {})):
        assert figure(name, last, [[1, 2]], **keys) == figure(name, second, [[1, 2]], **keys)


def test_errors_of_values() -> None:
    outputs, targets = [[1.0], [2.0], [5.0]], [1.0, 4.0, 2.0]
    assert figure("mse", outputs, targets) == pytest.approx(13 / 3)
    assert figure("rmse", outputs, targets) == pytest.approx(math.sqrt(13 / 3))
    assert figure("mae", outputs, targets) == pytest.approx(5 / 3)
    assert figure("mape", outputs, targets) == pytest.approx((0 + 0.5 + 1.5) / 3)
    assert figure("median_error", outputs, targets) == 2
    assert figure("median_error", [*outputs, [0.0]], [*targets, 1.0]) == 1.5
    assert figure("r2", outputs, targets) == pytest.approx(1 - 13 / (42 / 9))


def test_r2_of_equal_targets_is_one_or_zero_and_of_one_sample_nothing() -> None:
    assert figure("r2", [[0.1]] * 3, [[0.1]] * 3, 1) == 1
    assert figure("r2", [[0.2], [0.1], [0.1]], [[0.1]] * 3, 1) == 0
    assert math.isnan(figure("r2", [[1.0]], [[1.0]]))


def test_r2_of_large_values_keeps_its_digits() -> None:
    """Prices around 630,000 that differ by a few: sums of their squares would lose everything."""
    targets = [[630_000.0 + i % 7] for i in range(100)]
    outputs = [[value + (0.5 if i % 2 else -0.5)] for i, (value,) in enumerate(targets)]
    mean = sum(value for (value,) in targets) / 100
    expected = 1 - 25 / sum((value - mean) ** 2 for (value,) in targets)
    assert figure("r2", outputs, targets, 30, 31, 64) == pytest.approx(expected, rel=1e-6)


def test_top_k_puts_the_later_of_equal_scores_first_and_nan_last() -> None:
    scores = [[1, 1, 0], [1, 1, 0], [NAN, 0, 1], [0, NAN, 1]]
    assert figure("top_k", scores, [0, 1, 0, 2], k=1) == 0.25
    assert figure("top_k", scores, [0, 1, 0, 2], k=2) == 0.75


@pytest.mark.parametrize(
    ("name", "each", "averages"),
    [
        ("precision", [1 / 2, 1 / 2, 0, 0], [1 / 3, 2 / 4, (2 / 2 + 1 / 2) / 4]),
        ("recall", [1 / 2, 1, 0, 0], [1.5 / 3, 2 / 4, (2 / 2 + 1) / 4]),
        ("f1", [1 / 2, 2 / 3, 0, 0], [(1 / 2 + 2 / 3) / 3, 2 / 4, (2 / 2 + 2 / 3) / 4]),
    ],
)
def test_averages_over_classes(name: str, each: list[float], averages: list[float]) -> None:
    """Class 0 is hit once of two, 1 answered twice for one, 2 never answered, and 3 is absent."""
    scores = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    labels = [0, 0, 2, 1]
    assert figure(name, scores, labels, average="none") == pytest.approx(each)
    found = [figure(name, scores, labels, average=kind) for kind in ("macro", "micro", "weighted")]
    assert found == pytest.approx(averages)


def test_of_two_classes_the_second_counts() -> None:
    scores, labels = [[1, 0], [0, 1], [0, 1], [1, 0]], [0, 1, 0, 0]
    assert figure("precision", scores, labels) == 0.5
    assert figure("recall", scores, labels) == 1
    assert figure("f1", scores, labels) == pytest.approx(2 / 3)
    assert figure("confusion", scores, labels) == [[2, 1], [0, 1]]
    assert figure("recall", scores[:1], labels[:1]) == 0  # no label of the second class


def pairs(scores: list[float], labels: list[int]) -> float:
    """The area by its definition."""
    inside = [s for s, y in zip(scores, labels, strict=True) if y]
    outside = [s for s, y in zip(scores, labels, strict=True) if not y]
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in inside for b in outside]
    return sum(won) / len(won)


def test_roc_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    scores = [0.5, 0.5, 1.0, -1.0, 2.0, 0.5, -3.0, 1.0]
    labels = [0, 1, 1, 0, 1, 0, 1, 0]
    outputs = [[0.0, score] for score in scores]
    assert figure("roc_auc", outputs, labels, 3, 4) == pairs(scores, labels)
    assert math.isnan(figure("roc_auc", outputs[:1], labels[:1]))
    assert math.isnan(figure("roc_auc", [[0, NAN], *outputs], [0, *labels]))
    assert figure("roc_auc", [[0, 1, 2], [1, 0, 0], [0, 1, 0]], [2, 0, 1]) == 1


def test_figures_of_probabilities() -> None:
    outputs = [[0.0, math.log(3.0)], [0.0, 0.0]]
    nats = -(math.log(0.75) + math.log(0.5)) / 2
    assert figure("log_loss", outputs, [1, 0]) == pytest.approx(nats)
    assert figure("perplexity", outputs, [1, 0]) == pytest.approx(math.exp(nats))
    assert figure("bits_per_character", outputs, [1, 0]) == pytest.approx(nats / math.log(2))
    assert figure("brier", outputs, [1, 0]) == pytest.approx((0.25**2 + 0.5**2) / 2)
    three = [[0.0, math.log(2.0), 0.0]]
    assert figure("brier", three, [1]) == pytest.approx(2 * 0.25**2 + 0.5**2)


def of_constant_logits(lengths: tuple[int, ...], labels: list[int]) -> float:
    """bits_per_byte where every token is as likely; tokens have these lengths."""
    vocabulary = len(lengths)
    task = Task("labels", (2,), vocabulary, text=True, token_bytes=lengths)
    metric = METRICS["bits_per_byte"]()
    assert metric.misfit(task) is None
    measured, targets = metric.for_task(task), engine.tensor(labels).reshape(-1, 2)
    captured = engine.capture(measured.state)
    states = [
        dict(captured(engine.zeros(1, 2, vocabulary), targets[i : i + 1]))
        for i in range(targets.shape[0])
    ]
    assert not captured.fallback_reason
    merged = measured.merge([{k: v.item() for k, v in state.items()} for state in states])
    return float(measured.finish(merged))


def test_bits_per_byte_are_those_of_the_text_whatever_its_tokens_are() -> None:
    labels = [0, 3, 3, 1, 2, 0, 7, 3]
    characters = (1, 1, 1, 2, 3, 1, 1, 4)
    length = sum(characters[label] for label in labels)
    found = of_constant_logits(characters, labels)
    assert found == pytest.approx(math.log2(8) * len(labels) / length, rel=1e-6)
    assert of_constant_logits((1,) * 8, labels) == pytest.approx(math.log2(8), rel=1e-6)
    assert of_constant_logits((1,) * 256, labels) == pytest.approx(8, rel=1e-6)
    assert of_constant_logits((1,) * 5, [0, 1]) == pytest.approx(math.log2(5), rel=1e-6)
    assert of_constant_logits((2,) * 5, [0, 1]) == pytest.approx(math.log2(5) / 2, rel=1e-6)


def test_bits_per_byte_need_the_text_of_tokens() -> None:
    problem, cure = METRICS["bits_per_byte"]().misfit(Task("labels", (2,), 9, text=True)) or (
        "",
        "",
    )
    assert (problem.split(",")[0], cure) == ("needs the text of each token", "use perplexity")


def test_log_loss_is_bounded_and_perplexity_is_not() -> None:
    assert figure("log_loss", [[0, 1000]], [0]) == pytest.approx(-math.log(2**-52))
    assert figure("perplexity", [[0, 1000]], [0]) == math.inf
    assert figure("bits_per_character", [[0, 1000]], [0]) == pytest.approx(1000 / math.log(2))


NUMBERS = [name for name in METRICS if not METRICS[name]().table]
ANSWERS = ("accuracy", "top_k", "precision", "recall", "f1")


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in ANSWERS])
def test_nan_among_the_outputs_is_nan_in_the_figure(name: str) -> None:
    if METRICS[name].targets == "labels":
        found = figure(name, [[0, 1], [NAN, 0], [1, 0]], [0, 0, 1], 1)
    else:
        found = figure(name, [[1], [NAN], [3]], [[1], [2], [4]], 1)
    assert math.isnan(found)


@pytest.mark.parametrize("name", METRICS)
def test_figures_do_not_depend_on_where_batches_are_cut(name: str) -> None:
    engine.manual_seed(3)
    if METRICS[name].targets == "labels":
        outputs, targets = engine.randn(50, 2).tolist(), engine.randint(0, 2, (50,)).tolist()
    else:
        outputs, targets = engine.randn(50, 3).tolist(), engine.randn(50, 3).tolist()
    keys = {"k": 1} if name == "top_k" else {}
    whole = figure(name, outputs, targets, **keys)
    exact = name in (*ANSWERS, "confusion", "roc_auc", "median_error")
    for cuts in ((1,), (49,), (10, 20, 30, 40), tuple(range(1, 50))):
        found = figure(name, outputs, targets, *cuts, **keys)
        assert found == (whole if exact else pytest.approx(whole, rel=2e-6)), cuts


@pytest.mark.parametrize("name", ["roc_auc", "median_error", "accuracy"])
def test_rows_are_copied_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time of an evaluation would grow with the square of the samples."""
    sizes: list[int] = []
    kind = METRICS[name]
    merge = kind.merge

    def counted(self: Metric, states: Any) -> Any:
        merged = merge(self, states)
        sizes.extend(one.shape[0] for one in merged.values() if isinstance(one, engine.Tensor))
        return merged

    monkeypatch.setattr(kind, "merge", counted)
    labels = kind.targets == "labels"
    outputs = [[0.0, 1.0] if labels else [1.0]] * 64
    figure(name, outputs, [0, 1] * 32 if labels else [[0.0]] * 64, *range(1, 64))
    columns = {"roc_auc": 2, "median_error": 1, "accuracy": 0}[name]
    assert sum(sizes) == columns * (64 + 64)  # each batch by itself, then all


@pytest.mark.parametrize("name", ["mse", "mae"])
def test_sums_of_batches_are_added_by_stretches_in_python_s_floats(name: str) -> None:
    """The bits of runs that were measured before states: 16 sums, then those to the rest."""
    engine.manual_seed(5)
    outputs, targets = engine.randn(250, 3), engine.randn(250, 3)
    split = Samples(outputs, targets)
    job: Any = SimpleNamespace(
        model=nn.Identity(),
        loss=nn.MSELoss(),
        postprocess=lambda outputs: outputs,
        metrics={name: METRICS[name]()},
        settings=TrainSettings(batch=7, steps=1),
    )
    found = Evaluation(job, split, "val").run()[f"val.{name}"]
    total = 0.0
    for begin in (0, 7 * 16, 7 * 32, 245):
        end = {0: 7 * 16, 7 * 16: 7 * 32, 7 * 32: 245, 245: 250}[begin]
        sums = []
        for first in range(begin, end, 7):
            difference = outputs[first : min(first + 7, end)] - targets[first : min(first + 7, end)]
            each = difference * difference if name == "mse" else difference.abs()
            sums.append(each.sum().item())
        total += sum(sums)
    assert found == total / 750


@pytest.mark.parametrize("name", METRICS)
def test_states_are_plain_data_and_merge_in_groups(name: str) -> None:
    """What is merged already merges again: several machines may each send one state."""
    metric = METRICS[name]()
    labels = metric.targets == "labels"
    engine.manual_seed(4)
    states = []
    for _ in range(4):
        outputs = engine.randn(6, 2)
        targets = engine.randint(0, 2, (6,)) if labels else engine.randn(6, 2)
        state = {
            key: one.item() if isinstance(one, engine.Tensor) and not one.ndim else one
            for key, one in metric.state(outputs, targets).items()
        }
        assert {type(one) for one in state.values()} <= {engine.Tensor, int, float}
        states.append(state)
    grouped = metric.merge([metric.merge(states[:3]), metric.merge(states[3:])])
    together = metric.finish(metric.merge(states))
    assert metric.finish(grouped) == (together if metric.table else pytest.approx(together))


def test_scores_rise_and_losses_fall() -> None:
    ways = {name: METRICS[name].direction for name in METRICS}
    falling = (
        "log_loss brier perplexity bits_per_character bits_per_byte mse rmse mae mape median_error"
    )
    assert [name for name in ways if ways[name] == "lower"] == falling.split()
    assert [name for name in ways if ways[name] == "neither"] == ["confusion"]
    measured = {"mine": METRICS["f1"]()}
    assert direction_of("val.mine", measured) == "higher"
    assert direction_of("val.loss", measured) == "lower"


def test_nan_is_never_better() -> None:
    assert not better("lower", math.nan, None)
    assert better("lower", 1.0, None)
    assert better("lower", 0.9, 1.0)
    assert not better("lower", 0.95, 1.0, margin=0.1)
    assert better("higher", 0.9, 0.8)
    assert not better("higher", 0.9, 0.9)
