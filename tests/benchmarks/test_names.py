"""What a tree offers by name: what is listed, and that each planted loss is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import names, tree
from benchmarks.__main__ import main
from gradcli import engine
from gradcli.cli import main as command_line
from gradcli.cli.train import command as train
from gradcli.config import json_schema
from gradcli.engine import nn, optim


@pytest.fixture(scope="module")
def now() -> names.Names:
    return names.collect()


def test_a_tree_lacks_nothing_of_itself(now: names.Names) -> None:
    assert names.missing(now, now) == []


def test_the_list_has_names_of_every_kind(now: names.Names) -> None:
    facts = {
        "gradcli.engine.nn.functional.relu": set(),
        "gradcli.engine.Tensor.softmax": set(),
        "gradcli.engine.Tensor.__matmul__": set(),
        "gradcli.engine.DType.is_floating_point": set(),
        "gradcli.engine.optim.lr_scheduler.StepLR.step": {"needs at most 0 arguments"},
        "gradcli.engine.nn.Linear": {"takes in_features in place 0", "takes bias=True"},
        "gradcli.engine.zeros": {"takes *", "takes device=None"},
        "gradcli.errors.ShapeError": set(),
        "op softmax": {"takes dim in place 1", "takes bfloat16", "has a gradient", "runs on cuda"},
        "gradcli.train": {"takes --set", "takes --device cuda"},
        "config.loss": {"takes 'mse'"},
        "config.optim[adamw].betas": {"can be left out", "is [0.9, 0.999] where left out"},
        "config.model.conv.out": {"takes integer"},
        "config.model.residual.shortcut": {"can be left out"},
        "config.train.micro_batch": {"can be left out"},
    }
    assert {name for name, expected in facts.items() if not expected <= set(now[name])} == set()


def _without_gelu(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(nn.functional, "gelu")


def _without_a_class(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(optim, "Lion")


def _with_other_arguments(patch: pytest.MonkeyPatch) -> None:
    def capture(step: Callable[..., Any], way: str, *, eager: bool = True) -> None: ...

    patch.setattr(capture, "__module__", "gradcli.engine")
    patch.setattr(engine, "capture", capture)


def _with_hidden_arguments(patch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **named: Any) -> None: ...

    patch.setattr(full, "__module__", "gradcli.engine")
    patch.setattr(engine, "full", full)


def _without(patch: pytest.MonkeyPatch, table: str, name: str) -> None:
    rows = getattr(json_schema, table)
    patch.setattr(json_schema, table, {key: row for key, row in rows.items() if key != name})


def _without_a_layer(patch: pytest.MonkeyPatch) -> None:
    _without(patch, "LAYERS", "mish")


def _without_a_loss(patch: pytest.MonkeyPatch) -> None:
    _without(patch, "LOSSES", "huber")


def _without_a_command(patch: pytest.MonkeyPatch) -> None:
    commands = {name: what for name, what in command_line.COMMANDS.items() if name != "doctor"}
    patch.setattr(command_line, "COMMANDS", commands)


def _without_an_option(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(train, "params", [p for p in train.params if "--debug" not in p.opts])


# How it is planted, a word that all sentences have, and some of them.
LOSSES_OF_NAMES = (
    (_without_gelu, "gelu", {"gradcli.engine.nn.functional.gelu is gone"}),
    (_without_a_class, "Lion", {"gradcli.engine.optim.Lion is gone"}),
    (
        _with_other_arguments,
        "gradcli.engine.capture ",
        {
            "gradcli.engine.capture no longer needs at most 1 arguments",
            "gradcli.engine.capture no longer takes eager=False",
            "gradcli.engine.capture no longer takes on_fallback=None",
        },
    ),
    (_with_hidden_arguments, "full", {"gradcli.engine.full does not say how it is called"}),
    (
        _without_a_layer,
        "mish",
        {"config.model.mish is gone", "config.model no longer takes 'mish'"},
    ),
    (
        _without_a_loss,
        "huber",
        {"config.loss[huber] is gone", "config.loss no longer takes 'huber'"},
    ),
    (_without_a_command, "gradcli.doctor", {"gradcli.doctor is gone"}),
    (
        _without_an_option,
        "--debug",
        {"gradcli.train no longer takes --debug", "gradcli.train no longer does without --debug"},
    ),
)


@pytest.mark.parametrize(("plant", "word", "expected"), LOSSES_OF_NAMES)
def test_a_loss_is_said_and_nothing_else(
    now: names.Names,
    plant: Callable[[pytest.MonkeyPatch], None],
    word: str,
    expected: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    sentences = names.missing(now, names.collect())
    assert expected <= set(sentences)
    assert [sentence for sentence in sentences if word not in sentence] == []


def test_the_command_says_what_is_missing_and_strict_fails(
    monkeypatch: pytest.MonkeyPatch, now: names.Names
) -> None:
    past = {**now, "gradcli.engine.gone": []}
    answers = iter([json.dumps(past), json.dumps(now)] * 2)
    monkeypatch.setattr("benchmarks.process.two_processors", list)
    monkeypatch.setattr(tree, "revision", lambda name: tree.present())
    monkeypatch.setattr(tree.Tree, "measure", lambda self, arguments: _answer(arguments, answers))
    result = CliRunner().invoke(main, ["names", "HEAD"])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "gradcli.engine.gone is gone"
    assert result.output.endswith("missing: 1\n")
    assert CliRunner().invoke(main, ["--strict", "names", "HEAD"]).exit_code == 6


def _answer(arguments: list[str], answers: Any) -> str:
    """Of the check where gradcli is, and of the lists."""
    return engine.__file__.rpartition("/")[0] if arguments[0] == "-c" else next(answers)
