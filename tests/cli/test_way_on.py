"""The lines below a summary: where the best checkpoint is, and commands that can be pasted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from points import CONFIG, gradcli, only_run

import gradcli as package
from gradcli.train.directory import best_and_last

__all__ = ["gradcli"]

SPOILED = (
    *("-s", "train.eval_every=3", "-s", "train.keep=9"),
    *("-s", "optim={name: sgd, lr: 5}", "-s", "train.best=val.loss"),
)


def commands(text: str) -> list[str]:
    """The command lines that a screen ends with."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("next "))
    return [line[11:] for line in lines[begin:] if line[11:].startswith("gradcli ")]


def pasted(gradcli, command: str, file: str = "new.txt") -> int:
    """The exit code of a line as it was printed, with a file for FILE."""
    Path("new.txt").write_text("0.5 -0.25\n")
    words = [file if word == "FILE" else word for word in shlex.split(command)]
    assert words[0] == "gradcli"
    return gradcli(*words[1:]).code


def test_the_commands_below_a_summary_work(gradcli) -> None:
    said = gradcli("train", "dots.yaml").err
    assert commands(said) == ["gradcli eval dots@best", "gradcli predict dots@best FILE"]
    assert [pasted(gradcli, each) for each in commands(said)] == [0, 0]


def test_the_best_checkpoint_is_named(gradcli) -> None:
    said = gradcli("train", "dots.yaml", *SPOILED)
    best, last = best_and_last(only_run())
    assert best != last
    value = said.out.split("val.loss ")[1].split()[0]
    assert f"best       val.loss {value}, step {best}; the last is step {last}\n" in said.err


def test_without_a_best_checkpoint_it_is_the_run(gradcli) -> None:
    said = gradcli("train", "dots.yaml", "-s", "train.best=null").err
    assert commands(said) == ["gradcli eval dots", "gradcli predict dots FILE"]
    assert "\nbest " not in said


def test_a_damaged_best_checkpoint_is_not_offered(gradcli) -> None:
    gradcli("train", "dots.yaml", *SPOILED, "--max-steps", "17")
    best, _ = best_and_last(only_run())
    path = only_run() / "checkpoints" / f"step-{best:08}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    said = gradcli("resume", "dots").err
    assert "the best checkpoint cannot be used" in said
    assert commands(said)[0] == "gradcli eval dots@last"
    assert [pasted(gradcli, each) for each in commands(said)] == [0, 0]


def test_a_run_that_stopped_can_go_on(gradcli) -> None:
    said = gradcli("train", "dots.yaml", "--max-steps", "4").err
    assert commands(said)[0] == "gradcli resume dots"
    assert pasted(gradcli, "gradcli resume dots") == 0


def test_a_run_elsewhere_is_named_by_its_path(gradcli) -> None:
    said = gradcli("train", "dots.yaml", "--runs", "my runs").err
    (run,) = Path("my runs/dots").iterdir()
    assert commands(said)[0] == f"gradcli eval '{run}@best'"
    assert [pasted(gradcli, each) for each in commands(said)] == [0, 0]


def test_a_run_that_is_not_the_newest_is_named_by_its_path(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "4")
    older = only_run()
    gradcli("train", "dots.yaml")
    said = gradcli("resume", str(older)).err
    assert commands(said)[0] == f"gradcli eval {older}@best"


def test_a_split_that_is_not_there_is_not_measured(gradcli, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{n},{n % 2}\n" for n in range(30)))
    text = CONFIG.replace("{name: points}", "{name: csv, file: table.csv, target: y, numeric: [x]}")
    Path("table.yaml").write_text(text.replace(", best: val.accuracy", ""))
    for split, words in (
        ("{train: 20, val: 10}", " --split val"),
        ("{train: 30}", " --split train"),
    ):
        said = gradcli("train", "table.yaml", "-s", f"data.split={split}")
        assert said.code == 0
        assert commands(said.err)[0] == f"gradcli eval dots{words}"
        assert pasted(gradcli, commands(said.err)[0]) == 0


def test_a_model_of_text_takes_a_prompt(gradcli, tmp_path: Path) -> None:
    (tmp_path / "song.txt").write_text("la le lu, " * 40)
    Path("song.yaml").write_text(
        "gradcli: 1\nname: song\ndata: {name: text, file: song.txt, context: 4}\n"
        "model: [embed: 4, linear: $data.vocab]\nloss: cross_entropy\n"
        "optim: {name: sgd, lr: 0.1}\ntrain: {epochs: 1, batch: 8}\n"
    )
    said = gradcli("train", "song.yaml")
    assert said.code == 0, said.err
    assert commands(said.err)[1] == 'gradcli predict song --prompt "TEXT"'
    assert pasted(gradcli, commands(said.err)[1].replace("TEXT", "la")) == 0


def test_json_says_nothing_of_it(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "--json")
    assert "gradcli eval" not in ended.out + ended.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_one_pipe_for_both_has_the_order_of_a_terminal(gradcli, unbuffered: str) -> None:
    root, script = str(Path(package.__file__).parents[1]), Path(__file__).with_name("points.py")
    done = subprocess.run(
        [sys.executable, script, "train", "dots.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root, "PYTHONUNBUFFERED": unbuffered},
    )
    words = [line.split()[0] for line in done.stdout.splitlines() if line[:1] != " "]
    order = [words.index(each) for each in ("run", "epoch", "finished:", "weights", "best", "next")]
    assert order == sorted(order)


OWN = """\
import gradcli
from gradcli import engine


@gradcli.dataset
class Ramp:
    def splits(self):
        x = engine.arange(8, dtype=engine.float32).reshape(8, 1)
        return {"train": (x, x.reshape(8))}
"""
READ = """
    def read(self, path, state):
        raise NotImplementedError
"""


@pytest.mark.parametrize(("code", "offered"), [(OWN, 1), (OWN + READ, 2)])
def test_predict_is_offered_where_the_data_reads_new_files(
    gradcli, code: str, offered: int
) -> None:
    Path("ramp.py").write_text(code)
    Path("ramp.yaml").write_text(
        "gradcli: 1\nname: ramp\ncode: ramp.py\ndata: ramp\nmodel: [linear: 1]\nloss: mse\n"
        "optim: {name: sgd, lr: 0.01}\ntrain: {epochs: 1, batch: 4}\n"
    )
    ended = gradcli("train", "ramp.yaml")
    assert ended.code == 0, ended.err
    assert len(commands(ended.err)) == offered
