"""What stands above a training, on a terminal and in a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from points import CONFIG, gradcli, only_run
from terminal import in_terminal

__all__ = ["gradcli"]

TABLE = """\
gradcli: 1
name: lines
data: {name: csv, file: table.csv, target: y, task: regression,
       numeric: [x], split: {train: 20, val: 6, test: 4}}
model: [linear: 3, relu, {repeat: {times: 2, layers: [linear: 3, relu]}}, linear: 1]
loss: mse
optim: {name: sgd, lr: 0.01}
train: {epochs: 2, batch: 5, precision: bf16, seed: 7}
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder with a config and its data."""
    rows = "".join(f"{n / 10},{n / 5 + 1}\n" for n in range(30))
    (tmp_path / "table.csv").write_text("x,y\n" + rows)
    (tmp_path / "lines.yaml").write_text(TABLE)
    return tmp_path


def rows(text: str) -> dict[str, str]:
    """The lines of a header, by their labels."""
    lines = text.splitlines()[:6]
    return {line[:11].strip(): line[11:] for line in lines if line[10:11] == " "}


def test_a_training_begins_with_what_is_trained(gradcli) -> None:
    said = rows(gradcli("train", "dots.yaml").err)
    assert said["run"] == str(only_run())
    assert said["model"] == "3 layers, 42 parameters"
    assert said["data"] == "points: 42 train, 20 val, 12 test"
    assert said["training"] == "3 epochs of 6 steps, batch 8"
    assert said["computing"].startswith("cpu (")
    assert said["computing"].endswith("), float32, seed 5")


def test_frozen_parameters_steps_and_parts_of_a_batch_are_named(gradcli) -> None:
    Path("dots.yaml").write_text(
        CONFIG.replace("epochs: 3", "steps: 9, micro_batch: 4") + "freeze: ['0.*']\n"
    )
    said = rows(gradcli("train", "dots.yaml").err)
    assert said["model"] == "3 layers, 42 parameters, 24 of them frozen"
    assert said["training"] == "9 steps, 6 an epoch, batch 8, micro_batch 4"


def test_resume_says_where_it_goes_on(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "4")
    said = rows(gradcli("resume", "last").err)
    assert said["run"] == str(only_run())
    assert said["resumed"] == "from step 4 of 18"
    assert said["model"] == "3 layers, 42 parameters"


def test_json_has_no_header(gradcli) -> None:
    assert gradcli("train", "dots.yaml", "--json").err == ""


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_terminal_of_any_width_shows_it_whole(columns: int, table: Path) -> None:
    screen = in_terminal(columns, ["train", "lines.yaml", "--threads", "1"], table)
    assert screen.code == 0
    assert [line.split()[0] for line in screen.lines[:5]] == [
        *("run", "model", "data", "training", "computing")
    ]
    assert max(map(len, screen.lines[:5])) < columns
    said = rows("\n".join(screen.lines))
    assert said["model"] == "7 layers, 34 parameters"
    assert said["data"] == "csv: 20 train, 6 val, 4 test"
    assert said["computing"].endswith(", 1 thread), bf16, seed 7")
    assert "\x1b[1mmodel\x1b[0m      7 layers" in screen.text
