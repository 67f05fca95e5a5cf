"""Layers of transformers from YAML: shapes, parameters, shared weights, and what does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.config.layers import LAYERS as LAYER_TABLE
from gradcli.config.load import Config, load
from gradcli.config.planned import build, build_all
from gradcli.config.schema import suggestion
from gradcli.errors import ErrorGroup, GradcliError

Write = Callable[..., Path]
LAYERS = "  - flatten\n  - linear: 16\n  - relu\n"
HEAD = "  - linear: {out: $data.classes, name: head}"


def planned(config_file: Write, layers: str, head: str = "linear: $data.vocab") -> Config:
    """A model of text: embed of 12, these layers, and the head."""
    lines = "".join(f"  - {line}\n" for line in layers.split("\n"))
    path = config_file((LAYERS, f"  - embed: {{dim: 12, std: 0.5, name: tokens}}\n{lines}"),
                       ("fake", "fake, kind: text"))  # fmt: skip
    text = path.read_text()
    assert HEAD in text
    path.write_text(text.replace(HEAD, f"  - {head}"))
    return load(path)


def mistakes(config_file: Write, layers: str, head: str = "linear: $data.vocab") -> str:
    with pytest.raises(ErrorGroup) as caught:
        planned(config_file, layers, head)
    errors: list[GradcliError] = caught.value.errors
    return " ".join(error.message for error in errors)


@pytest.mark.parametrize(
    ("layer", "parameters"),
    [
        ("positions", 8 * 12),
        ("attention: {heads: 2, head_dim: 8, qk_norm: rms, bias: false}", 12 * 48 + 16 * 12 + 16),
        ("attention: {heads: 3, bias: false, qkv_bias: true, alibi: true, window: 2}", 612),
        ("attention: {heads: 3, qk_norm: rms_plain, softcap: 5, qkv_bias: false}", 588),
        ("transformer: {heads: 3, rotary: true, rotary_form: half, qk_norm: rms}", 1884 + 8),
        ("attention: 3", 12 * 36 + 36 + 12 * 12 + 12),
        ("attention: {heads: 4, kv_heads: 2, bias: false}", 12 * 24 + 12 * 12),
        ("attention: {heads: 6, kv_heads: 1, rotary: true, causal: false}", 12 * 16 + 16 + 156),
        ("transformer: 3", 12 * 36 + 36 + 156 + 2 * 12 * 48 + 60 + 48),
        ("transformer: {heads: 3, mlp: 7, activation: swiglu, bias: false}", 576 + 252 + 24),
        ("transformer: {heads: 3, mlp: 7, norm_kind: rms, bias: false}", 576 + 168 + 24),
        ("transformer: {heads: 3, mlp: 7, norm_kind: rms_plain, bias: false}", 576 + 168),
        ("transformer: {heads: 3, norm_kind: layer_plain, activation: relusquared}", 1884 - 48),
        ("transformer: {heads: 3, mlp: 7, norm: post, activation: relu}", 624 + 168 + 19 + 48),
        ("transformer: {heads: 2, mlp: 2x, bias: false, rotary: true}", 432 + 144 + 576 + 24),
    ],
)  # fmt: skip
def test_a_layer_has_the_parameters_that_were_planned(
    config_file: Write, layer: str, parameters: int
) -> None:
    made = planned(config_file, layer).model[1]
    assert made.output.shape == (8, 12)
    assert made.parameters == parameters
    assert sum(p.numel() for p in build(made).parameters()) == parameters


def test_a_tied_head_has_the_weight_of_the_table(config_file: Write) -> None:
    head = "linear: {out: $data.vocab, tied: tokens}"
    layers = planned(config_file, "repeat: {times: 2, layers: [transformer: 3]}", head).model
    model = build_all(layers)
    assert model[-1].weight is model[0].weight
    assert layers[-1].parameters == 65
    assert sum(layer.parameters for layer in layers) == sum(p.numel() for p in model.parameters())
    assert 0.4 < (model[0].weight * model[0].weight).mean().item() ** 0.5 < 0.6
    again = build_all(layers)
    assert again[-1].weight is again[0].weight
    assert again[0].weight is not model[0].weight


@pytest.mark.parametrize(
    ("layers", "head", "message"),
    [
        ("attention: 5", "relu", "5 heads must divide the width 12 evenly"),
        ("attention: {heads: 4, kv_heads: 3}", "relu", "kv_heads 3 must divide heads 4 evenly"),
        ("attention: {heads: 4, rotary: true}", "relu", "an even number of features a head, got 3"),
        ("attention: {heads: 4, head_dim: 5, rotary: true}", "relu", "features a head, got 5"),
        ("attention: {heads: 3, alibi: true, rotary: true}", "relu", "alibi and rotary positions"),
        ("attention: {heads: 4, window: 2, causal: false}", "relu", "window 2 needs causal"),
        ("attention: {heads: 4, window: 0}", "relu", "window must be a whole number from 1"),
        ("attention: {heads: 4, softcap: 0}", "relu", "softcap must be a finite number above 0"),
        ("attention: {heads: 4, rotary_base: 5}", "relu", "and rotary_form need rotary positions"),
        ("transformer: {heads: 3, norm_kind: batch}", "relu", "layer, layer_plain, rms, rms_plain"),
        ("transformer: {heads: 4, qk_norm: l2}", "relu", "one of none, rms, rms_plain, got text"),
        ("flatten\ntransformer: 3", "relu", "needs sequences (steps x features), got 96"),
        ("flatten\npositions", "relu", "layer 2, positions: needs sequences"),
        ("transformer: {heads: 3, mlp: 0x}", "relu", "a multiple of the features such as 4x"),
        ("transformer: {heads: 3, norm: layer}", "relu", "norm must be one of pre, post"),
        ("relu", "linear: {out: 65, tied: token}", "named 'token'; named ones: tokens"),
        ("relu", "linear: {out: 64, tied: tokens}", "needs 12 features and out 65, got 12 and 64"),
        ("linear: 9", "linear: {out: 65, tied: tokens}", "needs 12 features and out 65, got 9 and"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(
    config_file: Write, layers: str, head: str, message: str
) -> None:
    assert message in mistakes(config_file, layers, head)


def test_the_name_of_others_for_a_squared_relu_is_known() -> None:
    assert suggestion("relu2", LAYER_TABLE) == "did you mean 'relusquared'?"


@pytest.mark.parametrize(
    ("layers", "std"),
    [
        ("positions\nlayer_norm", 0.02),
        ("residual: [attention: 3]", 0.02),
        ("repeat: {times: 2, layers: [transformer: {heads: 3}]}", 0.02),
        ("lstm: 12", 1.0),
        ("linear: {out: 12, name: attention}", 1.0),
    ],
)
def test_an_embedding_beside_positions_or_attention_begins_small(
    config_file: Write, layers: str, std: float
) -> None:
    path = planned(config_file, layers).root / "config.yaml"
    written = {}
    for form in ("12", "{dim: 12}", f"{{dim: 12, std: {std}}}"):
        path.write_text(re.sub(r"embed: .*", f"embed: {form}", path.read_text()))
        config = load(path)
        assert config.resolved["model"][0] == {"embed": {"dim": 12, "std": std}}
        engine.manual_seed(3)
        written[form] = build_all(config.model)[0].weight.tolist()
    assert len({str(weight) for weight in written.values()}) == 1
