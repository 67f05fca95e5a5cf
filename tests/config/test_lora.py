"""`lora:` and ranges in patterns: which layers are adapted, which weights are trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.config import build, check_model, load
from gradcli.data import LoadedData
from gradcli.engine import nn
from gradcli.engine.nn.lora import is_adapter
from gradcli.errors import ErrorGroup

Write = Callable[..., Path]
TEXT = """\
gradcli: 1
data: {name: fake, kind: text}
model:
  - embed: {dim: 12, name: tokens}
  - repeat: {name: block, times: 4, layers: [{transformer: {heads: 3}}]}
  - layer_norm
  - linear: {out: $data.vocab, bias: false, tied: tokens, name: head}
loss: cross_entropy
optim: {name: adamw, lr: 0.01}
train: {steps: 10, batch: 4, seed: 3}
"""
SHARED = "linear: {out: $data.vocab, bias: false, tied: tokens, name: head}"
OWN = "linear: {out: $data.vocab, name: head}"


def model_of(config_file: Write, section: str, *changes: tuple[str, str]) -> nn.Module:
    file = config_file(("loss:", f"{section}\nloss:"), *changes, text=TEXT)
    config = load(file)
    return build(config, LoadedData(config.data, config.facts, {}, {})).model


def trained(model: nn.Module) -> set[str]:
    return {name for name, one in model.named_parameters() if one.requires_grad}


ATTENTION = {f"1.{i}.attention.{layer}" for i in range(4) for layer in ("qkv", "out")}
NETWORK = {f"1.{i}.mlp.{layer}" for i in range(4) for layer in (0, 2)}


@pytest.mark.parametrize(
    ("match", "layers"),
    [
        ("[attention]", ATTENTION),
        ("[qkv]", {name for name in ATTENTION if name.endswith("qkv")}),
        ("[linear]", ATTENTION | NETWORK),  # the head's weight is the embedding
        ('["*"]', ATTENTION | NETWORK),
        ('["block.1-2.mlp", qkv.weight]', {n for n in NETWORK if n[2] in "12"} | {
            n for n in ATTENTION if n.endswith("qkv")}),
    ],
)  # fmt: skip
def test_layers_that_match_are_adapted_and_all_else_is_frozen(
    config_file: Write, match: str, layers: set[str]
) -> None:
    model = model_of(config_file, f"lora: {{match: {match}, rank: 3}}")
    expected = {f"{layer}.lora_{letter}" for layer in layers for letter in "AB"}
    assert trained(model) == expected
    assert model.get_parameter(min(expected)).shape[0] == 3


def test_weights_beside_the_adapters_and_first_values(config_file: Write) -> None:
    plain = model_of(config_file, "")
    model = model_of(
        config_file,
        "lora: {match: [head, attention], train: [norm, bias]}\nfreeze: [block.0-1]",
        (SHARED, OWN),
    )
    names = trained(model)
    assert {"3.lora_A", "3.lora_B", "2.weight", "1.2.norm1.weight", "1.3.mlp.0.bias"} <= names
    assert not any(name.startswith(("1.0.", "1.1.")) for name in names)
    assert not any(name.endswith(("qkv.weight", "mlp.0.weight")) for name in names)
    for name, tensor in plain.state_dict().items():
        if name != "3.weight":
            assert engine.equal(model.state_dict()[name], tensor), name


def test_the_resolved_config_says_the_same(config_file: Write) -> None:
    config = load(config_file(("loss:", "lora: {match: [qkv]}\nloss:"), text=TEXT))
    section = {"match": ["qkv"], "rank": 8, "alpha": 16.0, "dropout": 0.0, "train": []}
    assert config.resolved["lora"] == section
    assert "lora" not in load(config_file(text=TEXT)).resolved
    sizes = check_model(config)
    assert sum(sizes.adapters.values()) == 4 * 8 * (12 + 36)
    assert all(is_adapter(name) != (name in sizes.frozen) for name in sizes.adapters)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("lora: {}", "match"),
        ("lora: {match: []}", "lora.match"),
        (
            "lora: {match: [qkv], rank: 0}",
            "lora.rank must be a whole number from 1 to",
        ),
        ("lora: {match: [qkv], alpha: 0}", "lora.alpha must be"),
        ("lora: {match: [qkv], rank: 13}", "narrower side of layer 1.0.attention.qkv is 12"),
        ("lora: {match: [qkv], dropout: 1}", "lora.dropout must be a number in [0, 1)"),
        ("lora: {match: [qkv], ranks: 3}", "did you mean 'rank'?"),
        ("lora: 8", "lora must be"),
        ("lora: {match: [qvk]}", "'qvk' matches no linear layer of the model; did you mean 'qkv'?"),
        ("lora: {match: [layer_norm]}", "'layer_norm' matches no linear layer"),
        ("lora: {match: [head]}", "'head' matches no linear layer"),
        ("lora: {match: [qkv], train: [heda]}", "lora.train: 'heda' matches no parameter"),
        ("lora: {match: [qkv]}\nfreeze: ['*']", "freeze: nothing is left to train"),
        ("freeze: [block.4-9]", "freeze: 'block.4-9' matches no parameter"),
        ("freeze: [block.3-1]", "freeze: 'block.3-1' matches no parameter"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(config_file: Write, section: str, told: str) -> None:
    file = config_file(("loss:", f"{section}\nloss:"), text=TEXT)
    with pytest.raises(ErrorGroup) as caught:
        check_model(load(file))
    [error] = caught.value.errors
    assert told in " ".join([error.message, error.caret or "", *error.notes])
    assert error.location and error.location.line == TEXT.count("\n", 0, TEXT.index("loss:")) + (
        2 if "freeze" in section and "lora" in section else 1
    )


@pytest.mark.parametrize(
    ("pattern", "blocks"),
    [("block.0-2.*", "012"), ("block.1-1", "1"), ("block.2-30", "23"), ("repeat.00-1.norm1", "01")],
)
def test_a_range_names_numbers(config_file: Write, pattern: str, blocks: str) -> None:
    everything = trained(model_of(config_file, ""))
    frozen = everything - trained(model_of(config_file, f"freeze: ['{pattern}']"))
    assert {name[2] for name in frozen} == set(blocks)
    assert all(name.startswith("1.") for name in frozen)
    assert frozen == {
        name
        for name in everything
        if name[:2] == "1." and name[2] in blocks and ("norm1" in name or "norm1" not in pattern)
    }
