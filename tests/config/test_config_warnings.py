"""What a config is warned of: it trains, and hardly as meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.config.load import load

Write = Callable[..., Path]


def test_a_milestone_past_the_end_is_a_warning(config_file: Write) -> None:
    config = load(config_file(("name: cosine, warmup: 5%", "name: step, at: [10, 30]")))
    assert "schedule.at 30 is never reached" in config.warnings[0].message


@pytest.mark.parametrize("layer", ["softmax", "repeat: {times: 1, layers: [relu, softmax]}"])
def test_a_softmax_before_cross_entropy_is_a_warning(config_file: Write, layer: str) -> None:
    config = load(config_file(("name: head}", f"name: head}}\n  - {layer}")))
    assert [warning.code for warning in config.warnings] == ["W101"]


def test_a_variable_that_nothing_names_is_a_warning(config_file: Write) -> None:
    config = load(config_file(("loss:", "vars: {width: 3}\nloss:")))
    assert "vars.width (3) is not used" in config.warnings[0].message
