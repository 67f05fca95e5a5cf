"""The `metrics:` list: keys, names, what fits the task, and what may be watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gradcli.config import load
from gradcli.errors import ErrorGroup, GradcliError

Write = Callable[..., Path]
DATA, LIST = "{name: fake}", "metrics: [accuracy]"


def mistakes(path: Path) -> list[GradcliError]:
    with pytest.raises(ErrorGroup) as caught:
        load(path)
    return caught.value.errors


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("[accuracy, top_k]", ["accuracy", {"top_k": {"k": 5}}]),
        ("[{accuracy: {}}, {top_k: 3}]", ["accuracy", {"top_k": {"k": 3}}]),
        ("[accuracy, {f1: {average: macro}}]", ["accuracy", {"f1": {"average": "macro"}}]),
        ("[accuracy, {recall: none}]", ["accuracy", {"recall": {"average": "none"}}]),
        (
            "[accuracy, {f1: {average: macro, name: a}}, {f1: {average: micro}}]",
            ["accuracy", {"f1": {"average": "macro", "name": "a"}}, {"f1": {"average": "micro"}}],
        ),
    ],
)
def test_the_list_in_full_loads_to_the_same(
    config_file: Write, tmp_path: Path, written: str, full: list[Any]
) -> None:
    config = load(config_file((LIST, f"metrics: {written}")))
    assert config.resolved["metrics"] == full
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(config.resolved))
    assert load(again).metrics == config.metrics


LABELS, VALUES = "{name: fake}", "{name: fake, kind: values}"
TWO, TEXT = "{name: fake, classes: 2}", "{name: fake, kind: text}"


@pytest.mark.parametrize(
    ("data", "metric", "message", "cure"),
    [
        (LABELS, "r2", "'r2' is for values, this data has labels as targets", "use accuracy"),
        (VALUES, "roc_auc", "'roc_auc' is for labels, this data has values", "use mae"),
        (VALUES, "perplexity", "'perplexity' is for texts, this data has no next", "use mae"),
        (LABELS, "perplexity", "is for texts, this data has no next tokens", "use log_loss"),
        (LABELS, "bits_per_character", "is for texts, this data has no next", "use log_loss"),
        (LABELS, "f1", "'f1' with average binary is for two classes, this data has 10", "macro"),
        (TEXT, "recall", "average binary is for two classes, this data has 65", "macro"),
        (LABELS, "{top_k: 10}", "'top_k' with k 10 is always 1, this data has 10", "a k below 10"),
        (TWO, "top_k", "'top_k' with k 5 is always 1, this data has 2 classes", "use accuracy"),
        ("{name: fake, classes: 1001}", "confusion", "is for up to 1000 classes", "leave it out"),
    ],
)
def test_a_metric_that_does_not_fit_the_task_has_place_and_cure(
    config_file: Write, data: str, metric: str, message: str, cure: str
) -> None:
    path = config_file((DATA, data), (LIST, f"metrics: [{metric}]"))
    [error] = [error for error in mistakes(path) if message in error.message]
    assert cure in error.caret
    assert error.location and error.location.line == 10


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("[acuracy]", "no metric is called 'acuracy' [did you mean 'accuracy'?]"),
        ("[accuracy, {topk: 3}]", "no metric is called 'topk' [did you mean 'top_k'?]"),
        ("[auc]", "no metric is called 'auc' [did you mean 'roc_auc'?]"),
        ("[confusion_matrix]", "no metric is called 'confusion_matrix' [did you mean 'confusion'"),
        ("[accuracy, 3]", "metrics must be a list of metric names, got 3 (item 2)"),
        ("[{top_k: 0}]", "metric top_k: k must be a whole number from 1 to 2147483647, got 0"),
        ("[{top_k: {n: 3}}]", "unknown key 'n' in metric top_k"),
        ("[{f1: {average: mean}}]", "metric f1: average must be one of binary, macro, micro"),
        ("[{accuracy: 3}]", "metric accuracy takes no value, got 3"),
        ("[{f1: {}, average: macro}]", "a metric is a name, name: value or name: {keys}, got a"),
        ("[accuracy, accuracy]", "metric 'accuracy' is listed twice"),
        ("[{recall: macro}, {recall: micro}]", "metric 'recall' is listed twice"),
        ("[{accuracy: {name: loss}}]", "name must be letters, digits, _ or -, beginning with a"),
        ("[{accuracy: {name: a.b}}]", "and not loss, got text 'a.b'"),
    ],
)
def test_a_wrong_list_is_one_sentence(config_file: Write, metrics: str, message: str) -> None:
    changes = (LIST, f"metrics: {metrics}"), (", best: val.accuracy", ""), ("test.accuracy", "t")
    found = mistakes(config_file(*changes))
    said = [e.message + (f" [{e.caret}]" if e.caret else "") for e in found]
    assert any(message in one for one in said), said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("best: val.accuracy", "best: val.acuracy", "did you mean 'val.accuracy'?"),
        ("best: val.accuracy", "best: accuracy", "names no split; write val.accuracy"),
        ("best: val.accuracy", "best: test.loss", "'test' is measured at the end only; while"),
        ("test.accuracy:", "accuracy:", "names no split; write val.accuracy or test.accuracy"),
        ("best: val.accuracy", "best: vla.loss", "there is no split 'vla'"),
        (
            "best: val.accuracy",
            "early_stop: {metric: val.loss, pacience: 2}",
            "unknown key 'pacience' in train.early_stop [did you mean 'patience'?]",
        ),
        (
            "best: val.accuracy",
            "early_stop: {metric: val.loss, patience: 0}",
            "train.early_stop.patience must be a whole number from 1",
        ),
        ("best: val.accuracy", "early_stop: {}", "train.early_stop.metric is missing"),
        ("test.accuracy:", "test.mse:", "metric 'mse' is not measured; here: loss, accuracy"),
    ],
)
def test_what_cannot_be_watched_is_one_sentence(
    config_file: Write, old: str, new: str, message: str
) -> None:
    [error] = mistakes(config_file((old, new)))
    assert message in error.message + (f" [{error.caret}]" if error.caret else "")
    assert error.location


MANY = "metrics: [accuracy, confusion, {recall: {average: none, name: each}}]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("best: val.accuracy", "best: val.confusion"), "train.best: metric 'confusion' is a matr"),
        (
            ("best: val.accuracy", "early_stop: {metric: val.each}"),
            "train.early_stop.metric: metric 'each' is a list with a figure for each class, and "
            "this takes a single number; here: loss, accuracy",
        ),
        (
            ("test.accuracy:", "test.confusion:"),
            "expect.test.confusion: metric 'confusion' is a matrix, and this takes a single number",
        ),
        (
            ("name: cosine, warmup: 5%", "name: plateau, metric: val.confusion"),
            "schedule.metric: metric 'confusion' is a matrix",
        ),
    ],
)
def test_a_figure_of_many_numbers_cannot_be_watched(
    config_file: Write, change: tuple[str, str], message: str
) -> None:
    [error] = mistakes(config_file((LIST, MANY), change))
    assert error.message.startswith(message)
    assert error.location


def test_scalars_are_watched_by_their_names(config_file: Write) -> None:
    config = load(
        config_file(
            (LIST, "metrics: [{f1: {average: macro, name: f1_macro}}, log_loss, {top_k: 3}]"),
            ("best: val.accuracy", "best: val.f1_macro, early_stop: {metric: val.log_loss}"),
            ("test.accuracy:", "test.top_k:"),
        )
    )
    assert config.train.best == "val.f1_macro"
    assert [*config.metrics] == ["f1_macro", "log_loss", "top_k"]
