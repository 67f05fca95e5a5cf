"""`init:` of layers: every name fills the weights, and mistakes have a place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.config import build, load
from gradcli.config.inits import INITS
from gradcli.data import LoadedData
from gradcli.engine import nn
from gradcli.errors import ErrorGroup
from gradcli.train.job import Job

Write = Callable[..., Path]


@pytest.fixture
def job(config_file: Write) -> Callable[..., Job]:
    """Builds the base config whose first linear layer has this `init`; no data are loaded."""

    def make(init: str) -> Job:
        config = load(config_file(("linear: 16", f"linear: {{out: 16, init: {init}}}")))
        return build(config, LoadedData(config.data, config.facts, {}, {}))

    return make


CASES = {
    "constant": "{name: constant, val: 0.25}",
    "sparse": "{name: sparse, sparsity: 0.5}",
    "dirac": "dirac",
}


@pytest.mark.parametrize("name", [name for name in INITS if name != "dirac"])
def test_each_name_fills_the_weight_and_leaves_the_bias(job: Callable[..., Job], name: str) -> None:
    model = job(CASES.get(name, name)).model
    expected = engine.empty(16, 784)
    options = {"constant": {"val": 0.25}, "sparse": {"sparsity": 0.5}}.get(name, {})
    engine.manual_seed(1)
    nn.Linear(784, 16)  # draws come behind its own
    getattr(nn.init, f"{name}_")(expected, **options)
    assert model.state_dict()["1.weight"].tolist() == expected.tolist()
    assert model.state_dict()["1.bias"].abs().max().item() > 0


def test_a_convolution_hands_on_its_channels(config_file: Write) -> None:
    layer = "conv: {out: 1, kernel: 3, padding: same, bias: false, init: dirac}"
    config = load(config_file(("  - flatten", f"  - {layer}\n  - flatten")))
    model = build(config, LoadedData(config.data, config.facts, {}, {})).model
    x = engine.rand(2, 1, 28, 28)
    assert next(iter(model.children()))(x).tolist() == x.tolist()


def test_the_resolved_config_has_every_key(job: Callable[..., Job]) -> None:
    layer = job("kaiming_normal").resolved["model"][1]["linear"]
    assert layer["init"] == {
        "name": "kaiming_normal",
        "a": 0.0,
        "mode": "fan_in",
        "nonlinearity": "leaky_relu",
    }


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "linear: 16",
            "linear: {out: 16, init: kaiming}",
            "layer 1, linear: no init is called 'kaiming'",
        ),
        ("linear: 16", "linear: {out: 16, init: {name: normal, std: -1}}", "std must be"),
        ("linear: 16", "linear: {out: 16, init: {name: normal, sdt: 1}}", "did you mean 'std'?"),
        ("linear: 16", "linear: {out: 16, init: sparse}", "sparsity is missing"),
        (
            "linear: 16",
            "linear: {out: 16, init: {name: trunc_normal, a: 3}}",
            "init (trunc_normal): a must be below b and std above 0, got a=3",
        ),
        (
            "- relu",
            "- relu: {init: normal}",
            "init 'normal' is given, and the layer has no weights",
        ),
    ],
)
def test_a_wrong_init_is_named(config_file: Write, old: str, new: str, says: str) -> None:
    with pytest.raises(ErrorGroup) as caught:
        load(config_file((old, new)))
    told = [f"{error.message} {error.caret}" for error in caught.value.errors]
    assert any(says in line for line in told), told
