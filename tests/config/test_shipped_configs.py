"""The configs that come with gradcli, and the one in the reference, are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradcli.config.load import load

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_a_config_says_what_it_is_and_what_it_reaches(path: Path) -> None:
    head = path.read_text().splitlines()[:3]
    assert head[0].startswith("# What:     ")
    assert head[1] == f"# Command:  gradcli train {path.relative_to(ROOT)}"
    assert head[2].startswith("# Expected: ")
    config = load(path)
    assert config.warnings == ()
    [expected] = config.expect
    assert expected.metric in head[2]
    assert str(expected.value) in head[2]


def test_the_reference_shows_a_right_config(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "config.md").read_text()
    example, *parts = re.findall(r"```yaml\n(.*?)```", text, re.S)
    path = ROOT / "configs" / "mnist.yaml"
    assert path.exists()
    copy = tmp_path / "config.yaml"
    copy.write_text(example)
    assert load(copy).name == "mnist-mlp"
    for number, part in enumerate(parts):  # what the other examples leave out is the first one's
        path = tmp_path / f"part{number}.yaml"
        path.write_text(f"extends: config.yaml\n{part}")
        assert load(path).model != load(copy).model
