"""`blocks:`: a use is the block's layers with the use's values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradcli.config import build as building
from gradcli.config import load
from gradcli.config.build import layer_lines
from gradcli.errors import ErrorGroup
from gradcli.train.yaml_text import to_yaml

HEAD = """
gradcli: 1
data: {name: csv, file: points.csv, target: y, task: regression,
  numeric: [a, b, c], split: {train: 60%, val: 40%}}
vars: {wide: 7}
loss: mse
optim: {name: sgd, lr: 0.1}
train: {steps: 1, batch: 2}
"""
BLOCKS = """
blocks:
  dense:
    params: {out: required, bias: true}
    layers:
      - linear: {out: $out, bias: $bias}
      - relu
  deep:
    params: {out: required}
    layers: [dense: $out, dense: {out: $out, bias: false}]
"""


@pytest.fixture
def config(tmp_path: Path):
    (tmp_path / "points.csv").write_text("a,b,c,y\n" + "1,2,3,4\n5,7,6,8\n" * 5)

    def write(text: str, *overrides: str):
        path = tmp_path / "config.yaml"
        path.write_text(HEAD + text)
        return load(path, overrides)

    return write


def mistakes(config, text: str) -> str:
    with pytest.raises(ErrorGroup) as caught:
        config(text)
    return "\n".join(f"{e.message} {e.caret} {e.notes}" for e in caught.value.errors)


def test_a_use_has_the_blocks_layers_with_its_own_values(config) -> None:
    found = config(BLOCKS + "model:\n  - dense: $vars.wide\n  - deep: {out: 5}\n  - linear: 1\n")
    kinds = [(layer.title, str(layer.output)) for top in found.model for layer in top.flat()]
    assert kinds == [
        ("dense", "7"),
        ("linear 7", "7"),
        ("relu", "7"),
        ("deep", "5"),
        ("dense", "5"),
        ("linear 5", "5"),
        ("relu", "5"),
        ("dense", "5"),
        ("linear 5", "5"),
        ("relu", "5"),
        ("linear 1", "1"),
    ]
    assert sum(layer.parameters for layer in found.model) == 4 * 7 + 8 * 5 + 5 * 5 + 6
    model = building(found).model
    assert sum(p.numel() for p in model.parameters()) == 4 * 7 + 8 * 5 + 5 * 5 + 6


def test_the_resolved_config_needs_no_blocks(config, tmp_path: Path) -> None:
    found = config(BLOCKS + "model: [repeat: {times: 2, layers: [deep: 5]}, linear: 1]\n")
    text = to_yaml(found.resolved)
    assert "blocks:" not in text
    again = tmp_path / "again.yaml"
    again.write_text(text)
    assert load(again).resolved == found.resolved
    assert layer_lines(load(again).model) == layer_lines(found.model)


def test_an_override_reaches_a_default(config) -> None:
    text = BLOCKS.replace("out: required, bias", "out: 3, bias") + "model: [dense, linear: 1]\n"
    assert str(config(text).model[0].output) == "3"
    assert str(config(text, "blocks.dense.params.out=9").model[0].output) == "9"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: [dense, linear: 1]", "block 'dense' needs a value for its parameter 'out'"),
        ("model: [dense: {out: 3, bais: true}]", "block 'dense' has no parameter 'bais'"),
        ("model: [dense: {out: 3, bais: true}]", "did you mean 'bias'?"),
        ("model: [dens: 3]", "no layer is called 'dens'"),
        ("model: [dense: {out: wide}]", "out must be a whole number"),
        ("model: [dense: {out: wide}]", "in block 'dense', used at"),
    ],
)
def test_a_wrong_use_is_named(config, text: str, message: str) -> None:
    assert message in mistakes(config, BLOCKS + text)


def test_layers_in_a_block_without_a_name_are_not_said_to_be_in_one(config) -> None:
    message = mistakes(config, "model: [block: [linear: wide], linear: 1]")
    assert "out must be a whole number" in message
    assert "in block" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blocks: {relu: {layers: [tanh]}}", "block 'relu' has the name of a layer"),
        ("blocks: {a: {layer: [tanh]}}", "unknown key 'layer' in blocks.a"),
        ("blocks: {a: {}}", "blocks.a.layers is missing"),
        ("blocks: [a]", "blocks must be a map"),
        ("blocks: {a: {layers: [b]}, b: {layers: [a]}}", "blocks go in a circle: a -> b -> a"),
    ],
)
def test_a_wrong_block_is_named(config, text: str, message: str) -> None:
    assert message in mistakes(config, text + "\nmodel: [a, linear: 1]\n")


def test_blocks_that_double_come_to_an_end(config) -> None:
    names = [f"b{i}" for i in range(40)]
    blocks = [
        f"  {a}: {{layers: [{b}, {b}]}}" for a, b in zip(names, [*names[1:], "relu"], strict=True)
    ]
    text = "blocks:\n" + "\n".join(blocks) + "\nmodel: [b0, linear: 1]\n"
    assert re.search(r"the uses of blocks put in more than \d+ values", mistakes(config, text))
