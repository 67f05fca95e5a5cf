"""Every key of `train:` is read by something; one that nothing reads would change nothing."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.train.job import EarlyStop, TrainSettings

PACKAGE = Path(__file__).parents[2] / "gradcli"
# What the settings are called where they are read: `job.settings.batch`, `config.train.batch`.
HOLDERS = {TrainSettings: {"settings", "_settings", "train"}, EarlyStop: {"early_stop", "stop"}}


def keys_read(text: str, holders: set[str]) -> Iterator[str]:
    """The attributes that a file reads of what goes by one of these names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            holder = node.value
            name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            if name in holders:
                yield node.attr


@pytest.mark.parametrize("section", HOLDERS)
def test_every_key_is_read_somewhere(section: type) -> None:
    files = [path for folder in ("train", "config") for path in (PACKAGE / folder).glob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    read = {key for text in texts for key in keys_read(text, HOLDERS[section])}
    unused = {field.name for field in dataclasses.fields(section)} - read
    assert unused == set(), "declared in gradcli/train/job.py, and nothing uses it"


def test_a_key_that_is_only_declared_or_set_is_not_read() -> None:
    text = "batch: int = 1\nsettings.batch = 2\nother.batch\nsettings.batches\n"
    assert set(keys_read(text, {"settings"})) == {"batches"}
