"""A run whose best checkpoint is not its last: which one each command uses, and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from points import gradcli, only_run

from gradcli.train.directory import best_and_last

__all__ = ["gradcli"]

KEEPS_A_BEST = ["train.best=val.loss", "train.early_stop={metric: val.loss, patience: 100}"]


@pytest.fixture(params=KEEPS_A_BEST)
def run(gradcli, request: pytest.FixtureRequest) -> Path:
    """A training that a high rate spoils, watched by `best` or by `early_stop` alone."""
    spoiled = ["train.best=null", "train.eval_every=3", "train.keep=9", "optim={name: sgd, lr: 5}"]
    if request.param.startswith("train.best"):
        spoiled[0] = request.param
    else:
        spoiled.append(request.param)
    assert gradcli("train", "dots.yaml", *(x for key in spoiled for x in ("-s", key))).code == 0
    best, last = best_and_last(only_run())
    assert best is not None  # or the tests show nothing
    assert best != last
    Path("new.txt").write_text("0.5 -0.25\n-0.125 1\n")
    return only_run()


def answers(gradcli, *arguments: str) -> object:
    return gradcli("predict", *arguments, "--json").json["predictions"]


def test_predict_uses_the_best_and_says_so(gradcli, run: Path) -> None:
    best, last = best_and_last(run)
    said = gradcli("predict", "dots", "new.txt")
    assert f"the best checkpoint, step {best}; --checkpoint last is step {last}" in said.err
    assert gradcli("predict", "dots@best", "new.txt").err == f"{run}: step {best} (best)\n"
    used = answers(gradcli, "dots", "new.txt")
    assert used == answers(gradcli, "dots@best", "new.txt")
    assert used == answers(gradcli, "dots", "new.txt", "--checkpoint", str(best))
    assert used != answers(gradcli, "dots@last", "new.txt")


def test_eval_measures_the_best_as_the_training_did(gradcli, run: Path) -> None:
    best, last = best_and_last(run)
    status = json.loads((run / "status.json").read_text())
    assert status["measured_step"] == best
    for text, step in (("dots", best), ("dots@best", best), ("dots@last", last)):
        found = gradcli("eval", text, "--json").json
        assert found["measured_step"] == step
        same = found["metrics"]["test.loss"] == status["metrics"]["test.loss"]
        assert same == (step == best)


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_best_checkpoint_that_cannot_be_used_is_never_replaced(
    gradcli, run: Path, how: str
) -> None:
    file = run / "checkpoints" / (run / "best").read_text().strip()
    if how == "gone":
        file.unlink()
    else:
        data = file.read_bytes()
        file.write_bytes(data[:-5] + bytes([data[-5] ^ 16]) + data[-4:])
    for command in (("eval", "dots"), ("predict", "dots", "new.txt")):
        ended = gradcli(*command)
        assert ended.code == 7
        assert ("other checkpoints: --checkpoint 18" in ended.err) == (how == "damaged")
        assert ("has no checkpoint 'best'; steps: 18" in ended.err) == (how == "gone")
        assert gradcli(command[0], "dots@last", *command[2:]).code == 0
    refused = gradcli("train", "dots.yaml", "--from", "dots")
    assert (refused.code, gradcli("resume", "dots").code) == (7, 0)


def test_a_pointer_that_is_gone_leaves_the_last(gradcli, run: Path) -> None:
    (run / "best").unlink()
    assert gradcli("eval", "dots", "--json").json["measured_step"] == 18


def test_a_copy_elsewhere_has_its_best(gradcli, run: Path, tmp_path: Path) -> None:
    used = answers(gradcli, "dots", "new.txt")
    shutil.move(run, tmp_path / "x@y")
    assert answers(gradcli, str(tmp_path / "x@y"), "new.txt") == used
    assert answers(gradcli, str(tmp_path / "x@y@best"), "new.txt") == used
