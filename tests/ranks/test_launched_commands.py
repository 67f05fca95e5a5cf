"""Commands under mpirun: who speaks, with which exit code all end, what is left behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from jobs import ROOT, gradcli, is_open_mpi, started

pytestmark = pytest.mark.mpi
MNIST = json.dumps(str(ROOT / "datasets" / "mnist"))


def test_doctor_knows_the_ranks(tmp_path: Path) -> None:
    ended = gradcli(2, "doctor", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)  # one object: rank 0 alone speaks
    assert [one["rank"] for one in report["ranks"]] == [0, 1]
    assert len({one["pid"] for one in report["ranks"]}) == 2
    assert ("Open MPI" if is_open_mpi() else "MPICH") in report["mpi"]
    assert [one["bytes"] for one in report["sums"]] == [1 << power for power in range(10, 27, 2)]


def test_what_all_ranks_find_wrong_is_said_once(tmp_path: Path) -> None:
    ended = gradcli(2, "train", "nothing.yaml", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.count("error[E101] rank 0 on ") == ended.err.count("error[") == 1
    assert "there is no file nothing.yaml" in ended.err


def test_the_error_of_one_rank_is_said_by_it_and_ends_all(tmp_path: Path) -> None:
    """One rank sees another file where the config is."""
    program = (
        "import sys\n"
        "from gradcli.cli import launchers, main\n"
        "launchers.begin('train')\n"
        f"there = {str(ROOT / 'configs' / 'mnist.yaml')!r}\n"
        "config = there if launchers.ranks().rank == 0 else 'nothing.yaml'\n"
        "sys.exit(main.run(['train', config, '--max-steps', '1', '--threads', '1']))\n"
    )
    with started(2, "-c", program, cwd=tmp_path) as job:
        ended = job.end()
        assert not job.outlives(5)
    assert ended.code == 2
    assert "error[E101] rank 1 on " in ended.err
    assert not list(tmp_path.glob("runs/*/*/checkpoints/*"))


def test_every_other_command_is_refused(tmp_path: Path) -> None:
    ended = gradcli(2, "check", "configs/mnist.yaml", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.count("error[E807]") == ended.err.count("error[") == 1
    assert ended.out == ""


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("train", "--help"), 0, "Usage: gradcli train"),
        ((), 2, "Usage: gradcli [OPTIONS] COMMAND"),
        (("trian",), 2, "error[E100] there is no command 'trian'; did you mean 'train'?"),
        (("train",), 2, "error[E100] Missing argument 'CONFIG'."),
        (("train", "--bogus"), 2, "error[E100] No such option '--bogus'."),
    ],
)
def test_what_is_wrong_with_the_line_is_said_once(
    tmp_path: Path, words: tuple[str, ...], code: int, line: str
) -> None:
    ended = gradcli(2, *words, cwd=tmp_path)
    assert (ended.code, (ended.out + ended.err).count(line)) == (code, 1)
    assert "MPI_Abort" not in ended.err


def test_the_screen_is_that_of_one_process_and_says_how_many_there_are(tmp_path: Path) -> None:
    config = str(ROOT / "configs" / "penguins.yaml")
    ended = gradcli(2, "train", config, "--threads", "1", "--max-steps", "3", cwd=tmp_path)
    said = ended.out + ended.err
    assert (ended.code, said.count("computing ")) == (0, 1)
    assert "computing  2 ranks, each on cpu (" in said


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    config = str(ROOT / "configs" / "mnist.yaml")
    words = ("train", config, "-s", "train.micro_batch=32", "--threads", "1", "--json")
    whole = gradcli(0, *words, "--max-steps", "40", "--runs", "whole", cwd=tmp_path)
    for ranks, steps in ((2, 15), (3, 30), (0, 35), (2, 40)):
        ended = gradcli(ranks, *words, "--continue", "--max-steps", str(steps), cwd=tmp_path)
        assert ended.code == 0, ended.err
    found, expected = json.loads(ended.out), json.loads(whole.out)
    assert len(list(tmp_path.glob("runs/*/*"))) == 1
    assert (found["steps"], found["weights_sha256"]) == (40, expected["weights_sha256"])


def test_a_finished_run_meets_its_expectations_on_all_ranks(tmp_path: Path) -> None:
    words = ("-s", "train.epochs=1", "-s", "train.micro_batch=16", "--threads", "1")
    expect = ("-s", "expect={test.accuracy: '>= 0.1'}")
    config = str(ROOT / "configs" / "penguins.yaml")
    assert gradcli(2, "train", config, *words, *expect, cwd=tmp_path).code == 0
    ended = gradcli(2, "resume", "last", "--threads", "1", cwd=tmp_path)
    assert (ended.code, ended.err.count("nothing to do")) == (0, 1)


def test_another_config_is_refused_by_rank_0_for_all(tmp_path: Path) -> None:
    config = str(ROOT / "configs" / "mnist.yaml")
    words = ("train", config, "--threads", "1", "--continue", "--max-steps", "2")
    assert gradcli(0, *words, cwd=tmp_path).code == 0
    ended = gradcli(2, *words, "-s", "optim.lr=0.5", cwd=tmp_path)
    assert (ended.code, ended.err.count("error[E131]")) == (2, 1)
    assert len(list(tmp_path.glob("runs/*/*"))) == 1


def test_figures_of_eval_and_the_end_of_resume_are_those_of_one_process(tmp_path: Path) -> None:
    """1237 samples in batches of 16: the last has 5, and the ranks have other numbers of them."""
    (tmp_path / "measured.yaml").write_text(
        "gradcli: 1\n"
        "name: measured\n"
        f"data: {{name: mnist, dir: {MNIST}, split: {{train: 200, val: 1237}}}}\n"
        "model: [flatten, {linear: 16}, relu, {linear: 10}]\n"
        "loss: cross_entropy\n"
        "metrics: [accuracy, {f1: {average: macro}}, log_loss, confusion]\n"
        "optim: {name: adamw, lr: 1e-2}\n"
        "train: {steps: 40, batch: 16, micro_batch: 4, checkpoint_every: 20, eval_every: 40}\n"
    )
    last = ("--threads", "1", "--json")
    begun = gradcli(2, "train", "measured.yaml", "--max-steps", "20", *last, cwd=tmp_path)
    run = json.loads(begun.out)["run"]
    weights = set()
    for ranks in (0, 3):
        own = tmp_path / f"resumed{ranks}"
        shutil.copytree(tmp_path / run, own)
        ended = gradcli(ranks, "resume", str(own), *last, cwd=tmp_path)
        assert ended.code == 0, ended.err
        weights.add(json.loads(ended.out)["weights_sha256"])
    assert len(weights) == 1
    reports = []
    for ranks in (0, 2, 3):
        ended = gradcli(ranks, "eval", str(own), "--split", "val", "--json", cwd=tmp_path)
        assert ended.code == 0, ended.err
        reports.append({**json.loads(ended.out), "seconds": None})
    assert reports[1:] == reports[:1] * 2
    assert {reports[0]["weights_sha256"]} == weights
    assert sum(map(sum, reports[0]["tables"]["val.confusion"])) == 1237
