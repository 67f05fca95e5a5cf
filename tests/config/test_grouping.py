"""Groups of parameters by pattern: rates, decays, and what is not trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.config import build, check_model, load
from gradcli.config.grouping import GROUPS, hidden_matrices
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.data import LoadedData
from gradcli.engine import nn, optim
from gradcli.errors import ErrorGroup, OptionError
from gradcli.train.job import Job
from gradcli.train.step import OneStep

Write = Callable[..., Path]
MODEL = "  - conv: {out: 2, kernel: 3, name: stem}\n  - batch_norm\n  - flatten\n  - linear: 16\n"
SGD = "{name: sgd, lr: 0.1}"
_PLAIN = {"lr": 0.5, "eps": 1e-3, "weight_decay": 0.3, "maximize": True}
_ADAM = {**_PLAIN, "betas": [0.8, 0.95]}
OTHERS: dict[str, dict[str, object]] = {  # than the defaults
    "sgd": {"lr": 0.5, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.3, "maximize": True},
    "adam": {**_ADAM, "amsgrad": True},
    "adamw": {**_ADAM, "amsgrad": True},
    "nadam": {**_ADAM, "momentum_decay": 0.1, "decoupled_weight_decay": True},
    "radam": {**_ADAM, "decoupled_weight_decay": True},
    "rmsprop": {**_PLAIN, "alpha": 0.9, "momentum": 0.9, "centered": True},
    "adagrad": {**_PLAIN, "lr_decay": 0.1, "initial_accumulator_value": 0.1},
    "adadelta": {**_PLAIN, "rho": 0.8},
    "muon": {
        "lr": 0.5,
        "eps": 1e-3,
        "weight_decay": 0.3,
        "betas": [0.8, 0.95],
        "momentum": 0.5,
        "ns_coefficients": [2.0, -1.5, 0.5],
        "ns_steps": 3,
        "adjust_lr_fn": "match_rms_adamw",
    },
    "lion": {key: value for key, value in _ADAM.items() if key != "eps"},
}


@pytest.fixture
def job(config_file: Write) -> Callable[..., Job]:
    """Builds the base config with a convolution and changes; its data are never loaded."""

    def make(optim: str, extra: str = "", *changes: tuple[str, str]) -> Job:
        model = ("  - flatten\n  - linear: 16\n", MODEL)
        config = load(config_file(model, (SGD, optim), ("loss:", f"{extra}loss:"), *changes))
        return build(config, LoadedData(config.data, config.facts, {}, {}))

    return make


def groups(made: Job) -> list[tuple[list[str], float, float]]:
    """Names, rate and decay of each group."""
    names = {id(p): name for name, p in made.model.named_parameters()}
    return [
        ([names[id(p)] for p in group["params"]], group["lr"], group["weight_decay"])
        for group in made.optimizer.param_groups
    ]


def test_without_patterns_there_is_one_group(job: Callable[..., Job]) -> None:
    assert [one[1:] for one in groups(job("{name: adamw, lr: 0.1}"))] == [(0.1, 0.01)]


def test_biases_and_norms_have_no_decay(job: Callable[..., Job]) -> None:
    made = job("{name: adamw, lr: 0.1, no_decay: [bias, norm]}")
    assert groups(made) == [
        (["0.weight", "3.weight", "5.weight"], 0.1, 0.01),
        (["0.bias", "1.weight", "1.bias", "3.bias", "5.bias"], 0.1, 0.0),
    ]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("head", ["5.weight", "5.bias"]),
        ("linear", ["3.weight", "3.bias", "5.weight", "5.bias"]),
        ("linear.bias", ["3.bias", "5.bias"]),
        ("conv.*", ["0.weight", "0.bias"]),
        ("stem", ["0.weight", "0.bias"]),
        ("b*norm.w*", ["1.weight"]),
        ("3", ["3.weight", "3.bias"]),
    ],
)
def test_a_pattern_names_layers_and_parameters(
    job: Callable[..., Job], pattern: str, names: list[str]
) -> None:
    made = job(f"{{name: sgd, lr: 0.1, groups: [{{match: ['{pattern}'], lr: 0.5}}]}}")
    assert (names, 0.5, 0.0) in groups(made)


def test_a_later_group_goes_over_an_earlier_one(job: Callable[..., Job]) -> None:
    made = job(
        "{name: adamw, lr: 0.1, no_decay: [bias], groups: [{match: [linear], lr: 0.2}, "
        "{match: [head], lr: 0.3, weight_decay: 0.5}]}"
    )
    assert groups(made) == [
        (["0.weight", "1.weight"], 0.1, 0.01),
        (["0.bias", "1.bias"], 0.1, 0.0),
        (["3.weight"], 0.2, 0.01),
        (["3.bias"], 0.2, 0.0),
        (["5.weight", "5.bias"], 0.3, 0.5),
    ]


def test_what_is_frozen_is_not_trained(job: Callable[..., Job]) -> None:
    made = job(SGD, "freeze: [stem, norm]\n")
    assert groups(made)[0][0] == ["3.weight", "3.bias", "5.weight", "5.bias"]
    frozen = [name for name, p in made.model.named_parameters() if not p.requires_grad]
    assert frozen == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert made.resolved["freeze"] == ["stem", "norm"]


def test_the_resolved_config_makes_the_same_groups(
    job: Callable[..., Job], config_file: Write
) -> None:
    made = job("{name: adamw, no_decay: [bias], groups: [{match: [head], lr: 0.3}]}")
    assert made.resolved["optim"]["no_decay"] == ["bias"]
    assert made.resolved["optim"]["groups"] == [{"match": ["head"], "lr": 0.3}]
    assert "no_decay" not in job(SGD).resolved["optim"]


@pytest.mark.parametrize(
    ("optim", "extra", "says"),
    [
        ("{name: sgd, lr: 0.1, no_decay: [bais]}", "", "optim.no_decay: 'bais' .*'bias'"),
        ("{name: sgd, lr: 0.1, no_decay: [head.kernel]}", "", "'head.kernel' matches no parameter"),
        (
            "{name: sgd, lr: 0.1, groups: [{match: [bias]}, {match: [haed], lr: 1}]}",
            "",
            r"optim.groups.1.match: 'haed' matches no parameter of the model; did you mean 'head'",
        ),
        (SGD, "freeze: [heads]\n", "freeze: 'heads' matches no parameter.*'head'"),
        (SGD, "freeze: ['*']\n", "nothing is left to train"),
    ],
)
def test_a_pattern_that_matches_nothing_is_named(
    job: Callable[..., Job], optim: str, extra: str, says: str
) -> None:
    with pytest.raises(ErrorGroup, match=says):
        job(optim, extra)


def test_all_patterns_that_match_nothing_are_told_at_once_with_their_places(
    config_file: Write,
) -> None:
    optim = "{name: sgd, lr: 0.1, no_decay: [bias, bais], groups: [{match: [heed]}]}"
    file = config_file((SGD, optim), ("loss:", "freeze:\n  - linear\n  - linaer\nloss:"))
    with pytest.raises(ErrorGroup) as caught:
        check_model(load(file))
    lines = file.read_text().splitlines()
    told = []
    for error in caught.value.errors:
        assert error.location and error.exit_code == 2
        told.append(lines[error.location.line - 1][error.location.column - 1 :].split("]")[0])
    assert told == ["linaer", "bais", "heed"]


def test_patterns_that_match_are_no_mistake(config_file: Write) -> None:
    check_model(load(config_file()))
    check_model(load(config_file(("loss:", "freeze: [linear.bias]\nloss:"))))


def test_a_pattern_of_an_override_is_placed_there(config_file: Write) -> None:
    with pytest.raises(ErrorGroup) as caught:
        check_model(load(config_file(), ["freeze=[heed]"]))
    assert str(caught.value.errors[0].location) == "-s freeze=[heed]"


@pytest.mark.parametrize(
    ("optim", "says"),
    [
        ("{name: sgd, lr: 0.1, groups: [{lr: 1}]}", "optim.groups.0.match is missing"),
        ("{name: sgd, lr: 0.1, groups: [{match: [], lr: 1}]}", "must be a list of patterns"),
        ("{name: sgd, lr: 0.1, no_decay: bias}", "optim.no_decay must be a list of patterns"),
        (
            "{name: sgd, lr: 0.1, groups: [{match: [a], lrr: 1}]}",
            "unknown key 'lrr' in optim.groups.0",
        ),
        ("{name: sgd, lr: 0.1, groups: [head]}", "optim.groups.0"),
        (
            "{name: adam, groups: [{match: [head], momentum: 0.9}]}",
            "unknown key 'momentum' in optim.groups.0 (adam)",
        ),
        (
            "{name: adam, groups: [{match: [head], betas: [0.9, 1.5]}]}",
            "optim.groups.0.betas must be two numbers, each in [0, 1) or null, got 1.5 (item 2)",
        ),
        (
            "{name: sgd, lr: 0.1, groups: [{match: [head], nesterov: true}]}",
            "optim.groups.0 (sgd): nesterov needs momentum above 0",
        ),
        (
            "{name: sgd, lr: no, groups: [{match: [head], lr: -1}, {match: [head], momentum: 2}]}",
            "optim.groups.1.momentum must be",
        ),
        ("{name: sgd, lr: 0.1, no_dekay: [a]}", "in optim did you mean 'no_decay'?"),
        ("{name: sgd, lr: 0.1, nestorov: true}", "(sgd) did you mean 'nesterov'?"),
        ("[sgd]", "optim must be a name"),
        ("{no_decay: [bias]}", "optim must be a name"),
    ],
)
def test_a_wrong_group_is_named(config_file: Write, optim: str, says: str) -> None:
    with pytest.raises(ErrorGroup) as caught:
        load(config_file((SGD, optim)))
    told = [f"{error.message} {error.caret}" for error in caught.value.errors]
    assert any(says in line for line in told), told


def test_options_of_groups_that_meet_in_one_parameter_are_tried_together(
    config_file: Write,
) -> None:
    groups = "groups: [{match: [linear], nesterov: true}, {match: [head], momentum: 0}]"
    optim = f"{{name: sgd, lr: 0.1, momentum: 0.9, {groups}}}"
    with pytest.raises(OptionError, match=r"optim\.groups: SGD: nesterov needs") as caught:
        load(config_file((SGD, optim)))
    assert caught.value.location and caught.value.exit_code == 2


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_option_of_every_optimizer_may_be_that_of_a_group(
    job: Callable[..., Job], name: str
) -> None:
    """The groups reach the optimizer; whatever a class declares is a key."""
    lr, options = "lr: 0.1, " if name == "sgd" else "", OTHERS[name]
    assert {*options} == {*GROUPS[name].fields} - {"match", "nesterov"}  # which needs dampening 0
    made = job(f"{{name: {name}, {lr}groups: [{{match: [head], {json.dumps(options)[1:-1]}}}]}}")
    first, *_, head = made.optimizer.param_groups
    written = json.loads(json.dumps({key: head[key] for key in options}))
    assert written == options
    assert not [key for key in options if first[key] == head[key]]
    assert made.resolved["optim"]["groups"] == [{"match": ["head"], **options}]


def test_muon_leaves_all_but_hidden_matrices_to_adamw(job: Callable[..., Job]) -> None:
    rest = "adamw_lr: 0.01, adamw_weight_decay: 0.2, adamw_eps: 1.0e-3, betas: [0.8, 0.9]"
    later = "{match: [head.weight], lr: 0.5}"
    made = job(f"{{name: muon, lr: 0.3, {rest}, no_decay: [bias], groups: [{later}]}}")
    names = {id(p): name for name, p in made.model.named_parameters()}
    found = {
        names[id(p)]: (group["adamw"], group["lr"], group["weight_decay"], group["eps"])
        for group in made.optimizer.param_groups
        for p in group["params"]
    }
    others = {
        name: (True, 0.01, 0.0 if name.endswith("bias") else 0.2, 1e-3)
        for name in names.values()
        if name not in ("3.weight", "5.weight")
    }
    assert found == {
        **others,
        "3.weight": (False, 0.3, 0.1, 1e-7),
        "5.weight": (True, 0.5, 0.2, 1e-3),
    }
    kept = {name.rpartition(".")[0] for name in made.optimizer.state_tensors()}
    assert kept == {"step", "exp_avg", "exp_avg_sq", "momentum_buffer"}


@pytest.mark.parametrize(
    ("model", "hidden"),
    [
        ([nn.Embedding(5, 4), nn.Positions(3, 4), nn.Linear(4, 4), nn.Linear(4, 5)], {"2.weight"}),
        ([nn.Linear(4, 5)], set()),
        ([nn.ReLU()], set()),
        ([nn.Conv1d(2, 3, 1), nn.Linear(4, 5), nn.Linear(5, 2), nn.LayerNorm(2)], {"1.weight"}),
        (
            [nn.LSTM(3, 2), nn.Linear(2, 2, bias=False)],
            {"0.weight_ih_l0", "0.weight_hh_l0"},
        ),
        (
            [nn.TransformerBlock(nn.SelfAttention(4, 2, qk_norm="rms"), 6), nn.Linear(4, 2)],
            {f"0.{name}.weight" for name in ("attention.qkv", "attention.out", "mlp.0", "mlp.2")},
        ),
    ],
)  # fmt: skip
def test_hidden_matrices_are_no_tables_and_no_head(
    model: list[nn.Module], hidden: set[str]
) -> None:
    assert hidden_matrices(nn.Sequential(*model)) == hidden


def test_a_tied_head_is_a_table() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.Linear(4, 5, bias=False))
    model[2].weight = model[0].weight
    assert hidden_matrices(model) == {"1.weight"}


@pytest.mark.parametrize("eager", [True, False])
def test_groups_with_momenta_of_their_own_step_as_in_torch(
    job: Callable[..., Job], eager: bool
) -> None:
    """torch.optim.AdamW with param_groups, on the gradients of each step; a few roundings apart.

    The engine's own optimizer with those groups has the same bits.
    """
    torch = pytest.importorskip("torch", reason="needs torch, the extra parity")
    made = job(
        "{name: adamw, lr: 0.01, no_decay: [bias, norm], groups: ["
        "{match: [linear], betas: [0.8, 0.95], eps: 1.0e-3}, {match: [head], amsgrad: true}]}"
    )
    parameters = dict(made.model.named_parameters())
    assert len(made.optimizer.param_groups) == 6
    twins = {
        name: torch.tensor(p.tolist()).reshape(p.shape).requires_grad_()
        for name, p in parameters.items()
    }
    ours = {name: p.detach().clone().requires_grad_() for name, p in parameters.items()}
    linear = {"betas": (0.8, 0.95), "eps": 1e-3}
    stem, none = {"betas": (0.9, 0.999), "eps": 1e-8}, {"weight_decay": 0.0}
    groups = [
        (["0.weight"], stem),
        (["0.bias", "1.weight", "1.bias"], {**stem, **none}),
        (["3.weight"], linear),
        (["3.bias"], {**linear, **none}),
        (["5.weight"], {**linear, "amsgrad": True}),
        (["5.bias"], {**linear, **none, "amsgrad": True}),
    ]
    theirs = torch.optim.AdamW(
        [{"params": [twins[n] for n in names], **own} for names, own in groups], lr=0.01
    )
    mine = optim.AdamW(
        [{"params": [ours[n] for n in names], **own} for names, own in groups], lr=0.01
    )

    def update(*grads: engine.Tensor) -> engine.Tensor:
        made.optimizer.zero_grad()
        total = engine.zeros(())
        for parameter, grad in zip(parameters.values(), grads, strict=True):
            total = total + (parameter * grad).sum()
        total.backward()
        made.optimizer.step()
        return total

    engine.manual_seed(3)
    step = update if eager else engine.capture(update)
    for _ in range(5):
        grads = {name: engine.randn(*p.shape) for name, p in parameters.items()}
        for name, grad in grads.items():
            twins[name].grad = torch.tensor(grad.tolist()).reshape(grad.shape)
            ours[name].grad = grad.clone()
        step(*grads.values())
        theirs.step()
        mine.step()
    assert not getattr(step, "fallback_reason", "")
    for name, parameter in parameters.items():
        assert parameter.tolist() == ours[name].tolist(), name
        away = (parameter - engine.tensor(twins[name].detach().tolist())).abs().amax().item()
        assert away < 1e-6, name


def test_groups_and_clipping_train_captured_as_eagerly(job: Callable[..., Job]) -> None:
    ends = []
    for eager in (False, True):
        made = job(
            "{name: adamw, lr: 0.01, no_decay: [bias, norm], groups: [{match: [head], lr: 0.1}]}",
            "freeze: [stem.bias]\n",
            ("batch: 10", "batch: 10, clip_value: 0.01, clip: 0.02"),
        )
        before = made.model.state_dict()["0.bias"].tolist()
        x, y = engine.randn(6, 10, 1, 28, 28), engine.randint(0, 10, (6, 10))
        step = OneStep(made, None)
        rates = engine.full((6, len(made.optimizer.param_groups)), 0.01, dtype=engine.float64)

        def update(x, y, rates, made=made, step=step):
            made.optimizer.take_rates(rates)
            made.optimizer.zero_grad()
            loss = made.loss(made.model(x), y)
            loss.backward()
            step.update()
            return loss

        engine.manual_seed(3)
        captured = engine.capture(update, eager=eager)
        captured.scan(x, y, rates)
        assert eager or not captured.fallback_reason
        assert made.model.state_dict()["0.bias"].tolist() == before
        ends.append({key: value.tolist() for key, value in made.model.state_dict().items()})
    assert ends[0] == ends[1]


def test_a_clip_value_below_0_is_refused() -> None:
    from gradcli.engine import optim

    with pytest.raises(OptionError, match="clip_value must be a number >= 0, got -1"):
        optim.clip_grad_value_([engine.ones(2)], -1)
