"""Losses by name: their keys, the targets and outputs they are for, what their outputs say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.config.load import load
from gradcli.config.losses import LOSSES
from gradcli.engine.nn import functional as F
from gradcli.errors import ErrorGroup
from gradcli.train.metrics import METRICS

Write = Callable[..., Path]
OF_VALUES = [
    ("fake", "fake, kind: values"),
    ("$data.classes", "1"),
    ("[accuracy]", "[mae]"),
    ("val.accuracy", "val.mae"),
    ("test.accuracy", "test.mae"),
]
OF_TWO = [("fake", "fake, classes: 2"), ("$data.classes", "1")]
LOGITS, SHARES = [[0.5, -1.0, 3.0]], [[0.25, 0.0, 1.0]]


def refused(path: Path) -> str:
    with pytest.raises(ErrorGroup) as caught:
        load(path)
    [error] = caught.value.errors
    return f"{error.message} [{error.caret}]"


def made(name: str, **options: Any) -> Any:
    return LOSSES[name](**options).make()


VALUED = {
    "mse": (F.mse_loss, {}),
    "l1": (F.l1_loss, {}),
    "smooth_l1": (F.smooth_l1_loss, {"beta": 0.5}),
    "huber": (F.huber_loss, {"delta": 0.5}),
    "bce_with_logits": (F.binary_cross_entropy_with_logits, {}),
    "kl": (F.kl_div, {"log_target": True, "reduction": "mean"}),
    "poisson_nll": (F.poisson_nll_loss, {"log_input": True, "full": True, "eps": 1e-3}),
}


@pytest.mark.parametrize("name", VALUED)
def test_a_loss_of_values_is_the_function_with_its_options(name: str) -> None:
    function, options = VALUED[name]
    outputs, targets = engine.tensor(LOGITS), engine.tensor(SHARES)
    wanted = function(outputs, targets, **options).item()
    assert made(name, **options)(outputs.reshape(3, 1), targets.reshape(3)).item() == wanted


def test_probabilities_and_logits_have_the_same_binary_loss() -> None:
    outputs, targets = engine.tensor(LOGITS), engine.tensor(SHARES)
    wanted = made("bce_with_logits")(outputs, targets).item()
    assert made("bce")(outputs.sigmoid(), targets).item() == pytest.approx(wanted, rel=1e-6)


def test_weights_reach_the_loss() -> None:
    outputs, targets = engine.tensor(LOGITS), engine.tensor(SHARES)
    many = engine.tensor([2.0, 1.0, 0.5])
    wanted = F.binary_cross_entropy_with_logits(outputs, targets, pos_weight=many).item()
    assert made("bce_with_logits", pos_weight=(2.0, 1.0, 0.5))(outputs, targets).item() == wanted
    twice = F.binary_cross_entropy_with_logits(outputs, targets, pos_weight=0 * many + 2).item()
    assert made("bce_with_logits", pos_weight=2.0)(outputs, targets).item() == twice
    rows, labels = engine.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]), engine.tensor([0, 2])
    for name, function in (("cross_entropy", F.cross_entropy), ("nll", F.nll_loss)):
        wanted = function(rows, labels, weight=many).item()
        assert made(name, weight=(2.0, 1.0, 0.5))(rows, labels).item() == wanted


def test_one_output_stands_for_the_second_of_two_classes() -> None:
    outputs, labels = engine.tensor([[0.3], [-2.0], [0.0]]), engine.tensor([1, 1, 0])
    rows = engine.cat([0 * outputs, outputs], 1)
    wanted = F.cross_entropy(rows, labels).item()
    for name, given in (("bce_with_logits", outputs), ("bce", outputs.sigmoid())):
        assert made(name)(given, labels).item() == pytest.approx(wanted, rel=1e-6)
        scores = LOSSES[name]().postprocess["labels"](given)
        assert METRICS["accuracy"]().state(scores, labels)["total"].item() == 2
        found, expected = engine.softmax(scores, -1).tolist(), engine.softmax(rows, -1).tolist()
        assert found == [pytest.approx(row, rel=1e-6) for row in expected]


def test_metrics_see_what_outputs_stand_for() -> None:
    outputs = engine.tensor([0.5])
    for name, value in (
        ("bce_with_logits", 1 / (1 + math.exp(-0.5))),
        ("kl", math.exp(0.5)),
        ("poisson_nll", math.exp(0.5)),
    ):
        assert LOSSES[name]().postprocess["values"](outputs).item() == pytest.approx(value)
    assert not {**LOSSES["kl"](log_target=True).postprocess, **LOSSES["mse"]().postprocess}


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"cross_entropy", "nll"}))
def test_every_loss_of_values_is_taken_for_values(config_file: Write, name: str) -> None:
    config = load(config_file(("cross_entropy", name), *OF_VALUES))
    assert load(config_file(text=json.dumps(config.resolved))).resolved == config.resolved
    if not config.loss.instance.binary:
        found = refused(config_file(("cross_entropy", name)))
        assert f"loss '{name}' is for values, this data has labels" in found


@pytest.mark.parametrize("name", ["cross_entropy", "nll"])
def test_losses_of_labels_are_refused_for_values(config_file: Write, name: str) -> None:
    found = refused(config_file(("cross_entropy", name), *OF_VALUES))
    assert found == f"loss '{name}' is for labels, this data has values as targets [use mse]"


@pytest.mark.parametrize("name", ["bce", "bce_with_logits"])
def test_binary_losses_take_two_classes_and_one_output(config_file: Write, name: str) -> None:
    loss = ("cross_entropy", name)
    assert load(config_file(loss, *OF_TWO)).model[-1].output.shape == (1,)
    found = refused(config_file(loss))
    assert found == f"loss '{name}' is for two classes, this data has 10 [use cross_entropy]"
    found = refused(config_file(loss, OF_TWO[0]))
    assert "gives 2 values a sample" in found
    assert f"'{name}' takes one for the second of two classes, 1" in found


def test_weights_are_as_many_as_classes_or_values(config_file: Write) -> None:
    def loss(text: str) -> tuple[str, str]:
        return ("loss: cross_entropy", f"loss: {{name: {text}}}")

    ten = [0.5] * 10
    assert load(config_file(loss(f"cross_entropy, weight: {ten}"))).loss.instance.weights == 10
    found = refused(config_file(loss("nll, weight: [1, 2]")))
    assert found == "loss 'nll' has 2 weights for 10 classes [give 10]"
    found = refused(config_file(loss("bce_with_logits, pos_weight: [1, 2]"), *OF_VALUES))
    assert found == "loss 'bce_with_logits' has 2 weights for 1 target values [give 1]"
    found = refused(config_file(loss("cross_entropy, weight: [-1]")))
    assert found == "loss.weight must be a list of finite numbers >= 0, got -1 (item 1) []"


@pytest.mark.parametrize(
    ("name", "last", "said"),
    [
        ("cross_entropy", "softmax", "takes the softmax itself; layer 3, softmax, makes it a"),
        ("nll", "softmax", "takes logarithms of probabilities; layer 3, softmax, gives prob"),
    ],
)
def test_a_last_layer_that_does_not_belong_is_a_warning(
    config_file: Write, name: str, last: str, said: str
) -> None:
    end = ("  - linear: {out: $data.classes, name: head}\n", f"  - linear: 10\n  - {last}\n")
    [warning] = load(config_file(("  - relu\n", ""), ("cross_entropy", name), end)).warnings
    assert said in str(warning)


def test_a_linear_end_before_bce_and_a_sigmoid_before_logits_are_warnings(
    config_file: Write,
) -> None:
    [warning] = load(config_file(("cross_entropy", "bce"), *OF_TWO)).warnings
    assert "gives any number" in str(warning) and warning.caret == "use bce_with_logits"
    end = ("name: head}\n", "name: head}\n  - sigmoid\n")
    assert load(config_file(("cross_entropy", "bce"), *OF_TWO, end)).warnings == ()
    [warning] = load(config_file(("cross_entropy", "bce_with_logits"), *OF_TWO, end)).warnings
    assert "bce_with_logits takes the sigmoid itself" in str(warning)


def test_accuracy_is_refused_for_values(config_file: Write) -> None:
    changes = [("cross_entropy", "bce_with_logits"), *OF_VALUES[:2]]
    with pytest.raises(ErrorGroup) as caught:
        load(config_file(*changes))
    assert any(
        "'accuracy' is for labels, this data has values" in e.message for e in caught.value.errors
    )


def test_names_of_functions_are_understood(config_file: Write) -> None:
    for written, known in (("l1_loss", "l1"), ("binary_cross_entropy", "bce"), ("kl_div", "kl")):
        assert f"did you mean '{known}'?" in refused(config_file(("cross_entropy", written)))
