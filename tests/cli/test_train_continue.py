"""`gradcli train CONFIG --continue`: what a job calls that may be started again at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from points import CONFIG, gradcli, only_run

__all__ = ["gradcli"]

AGAIN = ("train", "dots.yaml", "--continue")


def of(run: Path) -> dict[str, object]:
    return json.loads((run / "manifest.json").read_text())


def test_it_goes_on_to_the_bits_of_a_run_that_nothing_stopped(gradcli) -> None:
    assert gradcli(*AGAIN, "--max-steps", "4").code == 0
    stopped = only_run()
    ended = gradcli(*AGAIN, "--json")
    whole = gradcli("train", "dots.yaml", "--json", "--name", "whole")
    assert ended.json["run"] == str(stopped) == str(only_run())
    assert ended.json["weights_sha256"] == whole.json["weights_sha256"]
    assert ended.json["metrics"] == whole.json["metrics"]


def test_it_stops_again_where_it_is_told_to(gradcli) -> None:
    for steps in (3, 7, 7, 5):
        ended = gradcli(*AGAIN, "--max-steps", str(steps), "--json")
        assert (ended.code, ended.json["steps"]) == (0, max(steps, ended.json["steps"]))
    assert ended.json["steps"] == 7
    only_run()


def test_it_begins_a_run_where_there_is_none_or_the_last_is_finished(gradcli) -> None:
    first = gradcli(*AGAIN, "--json").json
    second = gradcli(*AGAIN, "--json").json
    assert first["status"] == second["status"] == "finished"
    assert first["run"] != second["run"]


def test_a_run_that_was_killed_before_its_first_checkpoint_goes_on(gradcli) -> None:
    gradcli(*AGAIN, "--max-steps", "4")
    run = only_run()
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    for name in ("status.json", "last", "best"):
        (run / name).unlink(missing_ok=True)
    assert gradcli(*AGAIN, "--json").json["run"] == str(run)


def test_of_several_it_takes_the_newest_of_this_config(gradcli) -> None:
    runs = []
    for overrides in ((), (), ("-s", "optim.lr=0.1")):
        ended = gradcli("train", "dots.yaml", "--max-steps", "2", "--json", *overrides)
        runs.append(ended.json["run"])
    assert gradcli(*AGAIN, "--json").json["run"] == runs[1]
    assert gradcli(*AGAIN, "-s", "optim.lr=0.1", "--json").json["run"] == runs[2]


def test_a_run_of_another_name_is_another(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "2", "--name", "other")
    assert "/dots/" in gradcli(*AGAIN, "--json").json["run"]


def test_the_same_name_with_another_config_names_resume(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "2")
    run = only_run()
    before = sorted(Path("runs").glob("**/*"))
    ended = gradcli(*AGAIN, "-s", "optim.lr=0.1")
    assert ended.code == 2
    assert f"error[E131] --continue: {run} is not finished and began with another" in ended.err
    assert f"gradcli resume {run}" in ended.err
    assert sorted(Path("runs").glob("**/*")) == before


def test_what_changes_no_step_may_be_another(gradcli) -> None:
    gradcli(*AGAIN, "--max-steps", "2")
    Path("dots.yaml").write_text(CONFIG.replace("epochs: 3", "steps: 20, keep: 1"))
    ended = gradcli(*AGAIN, "--json")
    assert (ended.json["run"], ended.json["steps"]) == (str(only_run()), 20)
    assert len(list((only_run() / "checkpoints").iterdir())) <= 2  # the last, and the best
    resolved = (only_run() / "resolved.yaml").read_text()
    assert "steps: 20" in resolved and "epochs" not in resolved


def test_a_fork_is_still_a_run_of_its_config(gradcli) -> None:
    gradcli(*AGAIN, "--max-steps", "2")
    run = only_run()
    sha256 = of(run)["config_sha256"]
    gradcli("resume", "last", "-s", "optim.lr=0.01")
    (run / "status.json").write_text('{"status": "running"}')  # as if it were killed
    assert of(run)["config_sha256"] == sha256 and of(run)["forks"]
    assert gradcli(*AGAIN, "--json").json["run"] == str(run)


def test_own_code_counts_by_its_text(gradcli) -> None:
    code = """\
import gradcli
from gradcli.engine import Tensor, nn

@gradcli.layer
class Twice(nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x * 2
"""
    Path("own.py").write_text(code)
    text = CONFIG.replace("data:", "code: own.py\ndata:").replace("- dropout: 0.2", "- twice")
    Path("dots.yaml").write_text(text)
    assert gradcli(*AGAIN, "--max-steps", "2").code == 0
    assert gradcli(*AGAIN, "--max-steps", "3").code == 0
    only_run()
    Path("own.py").write_text(code.replace("x * 2", "x * 3"))
    assert gradcli(*AGAIN).code == 2


def test_data_that_moved_goes_on_and_changed_data_does_not(gradcli, tmp_path: Path) -> None:
    rows = "a,b,kind\n" + "".join(f"{i},{i * i % 7},{'xy'[i % 2]}\n" for i in range(40))
    Path("one.csv").write_text(rows)
    text = "gradcli: 1\nname: dots\nloss: cross_entropy\noptim: {name: sgd, lr: 0.1}\n"
    text += "data: {name: csv, file: one.csv, target: kind, numeric: [a, b]}\n"
    text += "model: [linear: $data.classes]\n"
    Path("dots.yaml").write_text(text + "train: {epochs: 2, batch: 8}\n")
    assert gradcli(*AGAIN, "--max-steps", "2").code == 0
    (tmp_path / "one.csv").rename("two.csv")
    Path("dots.yaml").write_text(Path("dots.yaml").read_text().replace("one.csv", "two.csv"))
    assert gradcli(*AGAIN, "--max-steps", "4").code == 0
    only_run()
    Path("two.csv").write_text(rows.replace("39,", "40,"))
    ended = gradcli(*AGAIN)
    assert (ended.code, "the data changed since the checkpoint" in ended.err) == (7, True)


@pytest.mark.parametrize("damage", ["{", '{"config_sha256": 5}', "[]"])
def test_a_manifest_that_says_nothing_is_of_another_config(gradcli, damage: str) -> None:
    gradcli(*AGAIN, "--max-steps", "2")
    (only_run() / "manifest.json").write_text(damage)
    assert gradcli(*AGAIN).code == 2
