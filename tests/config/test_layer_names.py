"""Old names of layers: configs and runs of earlier versions have them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trusting import load

from gradcli.config.json_schema import json_schema
from gradcli.config.layer_names import OLD_NAMES
from gradcli.config.layers import LAYERS
from gradcli.config.planned import build_all
from gradcli.config.selection import select

Write = Callable[..., Path]
MODEL = "  - flatten\n  - linear: 16\n  - relu\n"
OWN = """
import gradcli
from gradcli.engine import nn

@gradcli.layer
class LayerNorm(nn.Module):
    def __init__(self, sample, gain: float = 2.0):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return x * self.gain
"""


def test_each_old_name_is_of_a_layer() -> None:
    assert set(OLD_NAMES.values()) <= set(LAYERS)
    assert not OLD_NAMES.keys() & LAYERS.keys()
    forms = json_schema()["$defs"]["layer"]["anyOf"]
    assert OLD_NAMES.keys() <= {name for form in forms for name in form.get("properties", {})}


@pytest.mark.parametrize(
    ("old", "new"),
    [("maxpool: 2", "max_pool: 2"), ("batchnorm", "batch_norm"), ("leakyrelu", "leaky_relu")],
)
def test_an_old_name_makes_the_same_layer_and_stays_as_written(
    config_file: Write, tmp_path: Path, old: str, new: str
) -> None:
    first, second = (
        load(config_file((MODEL, f"  - {line}\n  - flatten\n"))) for line in (old, new)
    )
    assert not first.warnings
    assert str(build_all(first.model)) == str(build_all(second.model))
    assert (first.model[0].kind, first.model[0].title) == (
        second.model[0].kind,
        old.replace(":", ""),
    )
    again = tmp_path / "resolved.json"
    again.write_text(json.dumps(first.resolved))
    assert load(again).resolved == first.resolved
    assert old.split(":")[0] in str(first.resolved["model"])


def test_patterns_take_both_names(config_file: Write) -> None:
    for written in ("batchnorm", "batch_norm"):
        model = build_all(load(config_file((MODEL, f"  - {written}\n  - flatten\n"))).model)
        names = {"0.weight", "0.bias"}
        assert select(model, ["batchnorm"], "freeze") == names
        assert select(model, ["batch_norm"], "freeze") == names


def test_own_layers_and_blocks_may_keep_a_name_that_layers_have_now(config_file: Write) -> None:
    path = config_file((MODEL, "  - flatten\n  - layer_norm: 3.0\n  - layernorm\n"))
    text = path.read_text()
    path.with_name("own.py").write_text(OWN)
    path.write_text(text.replace("loss:", "code: own.py\nloss:"))
    _, own, norm, *_ = build_all(load(path).model)
    assert own.gain == 3.0
    assert type(norm).__name__ == "LayerNorm"
    assert not hasattr(norm, "gain")
    path.write_text(
        text.replace("  - layernorm\n", "")
        .replace("layer_norm: 3.0", "layer_norm")
        .replace("loss:", "blocks: {layer_norm: {layers: [relu]}}\nloss:")
    )
    assert load(path).model[1].fields["of"] == "layer_norm"
