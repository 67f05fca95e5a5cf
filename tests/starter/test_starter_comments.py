"""Configs with comments say what they said before, and each key has its meaning beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gradcli.starter.comments import WIDTH, commented
from gradcli.starter.meanings import meaning, plain, sentence, short
from gradcli.train.job import TrainSettings

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_comments_change_nothing(path: Path) -> None:
    text = path.read_text()
    written = commented(text)
    assert yaml.safe_load(written) == yaml.safe_load(text)
    missing = [line for line in text.splitlines() if line[:1] == "#" and line not in written]
    assert not missing
    own = [line for line in text.splitlines() if "  # " in line]
    assert not [line for line in own if line.partition("  # ")[2] not in written]


def test_each_key_of_a_section_has_a_comment() -> None:
    lines = commented("optim: {name: sgd, lr: 0.1}\ntrain: {batch: 3, clip: 1.0}\n").splitlines()
    assert lines[0] == f"{'optim:':<40}  # the optimizer"
    assert lines[-2] == f"{'  batch: 3':<40}  # samples per update"
    assert lines[-1] == f"{'  clip: 1.0':<40}  # maximum norm of all gradients together"
    assert any("learning rate" in line for line in lines)


def test_a_comment_without_room_stands_above() -> None:
    name = "x" * 80
    above, line = commented(f"name: {name}\n").splitlines()
    assert (above, line) == ("# name of the runs", f"name: {name}")


def test_a_list_over_several_lines_stays_whole() -> None:
    text = "data:\n  name: csv\n  numeric: [a,\n    b]\n  file: 'a #b.csv'\n"
    written = commented(text)
    assert "  # input columns that are numbers\n  numeric: [a,\n    b]\n" in written
    assert yaml.safe_load(written) == yaml.safe_load(text)


def test_comments_fit_their_width() -> None:
    for path in CONFIGS:
        text = path.read_text()
        added = set(commented(text).splitlines()) - set(text.splitlines())
        assert not [line for line in added if line.lstrip()[:1] == "#" and len(line) > WIDTH]


def test_meanings_are_those_of_the_schema() -> None:
    assert meaning(TrainSettings, "epochs").startswith("passes over the training split")
    assert short(meaning(TrainSettings, "epochs")) == "passes over the training split"
    assert "runs.md" not in meaning(TrainSettings, "on_nonfinite")
    assert plain("a text ([x.md](x.md))") == "a text"
    assert meaning(TrainSettings, "nonsense") == ""
    assert sentence(TrainSettings).startswith("The `train:` section")
