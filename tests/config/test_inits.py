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


def test_some_matrices_of_a_layer_have_first_values_of_their_own(config_file: Write) -> None:
    inits = "[{name: normal, std: 0.02}, {name: zeros, match: [attention.out, mlp.2]}]"
    block = f"reshape: [49, 16]\n  - transformer: {{heads: 4, init: {inits}}}\n  - flatten"
    config = load(config_file(("  - flatten", f"  - {block}")))
    model = build(config, LoadedData(config.data, config.facts, {}, {})).model
    spread = {
        name.removeprefix("1."): p.std().item()
        for name, p in model.named_parameters()
        if name.startswith("1.") and p.ndim == 2
    }
    assert {name for name, std in spread.items() if std == 0} == {
        "attention.out.weight",
        "mlp.2.weight",
    }
    assert all(0.018 < spread[name] < 0.022 for name in ("attention.qkv.weight", "mlp.0.weight"))
    written = config.resolved["model"][1]["transformer"]["init"]
    assert written == [
        {"name": "normal", "mean": 0.0, "std": 0.02},
        {"name": "zeros", "match": ["attention.out", "mlp.2"]},
    ]


def test_what_no_pattern_matches_keeps_its_values(job: Callable[..., Job]) -> None:
    some = job("{name: zeros, match: [weight]}").model.state_dict()
    assert some["1.weight"].abs().max().item() == 0
    engine.manual_seed(1)
    assert some["1.bias"].tolist() == nn.Linear(784, 16).bias.tolist()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "linear: 16",
            "linear: {out: 16, init: {name: zeros, match: [out]}}",
            "init.match: 'out' matches no parameter",
        ),
        (
            "linear: 16",
            "linear: {out: 16, init: [zeros, {name: ones, match: weight}]}",
            "linear: init.match must be a list of patterns such as bias or head",
        ),
        ("linear: 16", "linear: {out: 16, init: [zeros, kaiming]}", "is called 'kaiming'"),
        ("linear: 16", "linear: {out: 16, init: []}", "linear: init must name at least one"),
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
