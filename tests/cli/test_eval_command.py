"""`gradcli eval`: what training reported, again, from the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from points import gradcli, only_run

from gradcli.train import checkpoint
from gradcli.train.compare import config_sha256

__all__ = ["gradcli"]


def test_last_gives_what_training_reported(gradcli) -> None:
    trained = gradcli("train", "dots.yaml", "--json").json
    ended = gradcli("eval", "last", "--json")
    assert ended.code == 0
    assert ended.json["weights_sha256"] == trained["weights_sha256"]
    assert ended.json["steps"] == 18
    for name in ("test.loss", "test.accuracy"):
        assert ended.json["metrics"][name] == trained["metrics"][name]
    val = gradcli("eval", "last", "--json", "--split", "val").json["metrics"]
    assert val["val.loss"] == trained["metrics"]["val.loss"]


def test_the_best_is_measured_unless_the_last_is_asked_for(gradcli) -> None:
    spoiled = (
        "train.best=val.loss",
        "train.eval_every=3",
        "train.keep=9",
        "optim={name: sgd, lr: 5}",
    )
    trained = gradcli("train", "dots.yaml", *(part for key in spoiled for part in ("-s", key)))
    assert "measured: the best checkpoint, step" in trained.out
    best, last = gradcli("eval", "last"), gradcli("eval", "last", "--checkpoint", "last")
    assert "--checkpoint last is step 18" in best.err
    assert "step 18" not in last.err
    figures = {
        which: gradcli("eval", "last", "--json", *asked).json
        for which, asked in {"": (), "best": ("--checkpoint", "best")}.items()
    }
    assert figures[""]["metrics"] == figures["best"]["metrics"]
    assert figures[""]["measured_step"] < 18


def test_it_says_what_was_measured(gradcli) -> None:
    gradcli("train", "dots.yaml", "-s", "train.best=null", "-s", "train.keep=9")
    for arguments, expected in (
        (("eval", "last"), "step 18 (last), split test, 12 samples"),
        (("eval", "dots@12", "--split", "val"), "step 12, split val, 20 samples"),
    ):
        ended = gradcli(*arguments)
        assert ended.out.splitlines()[1] == f"measured: {expected}"
        assert ended.out.startswith(f"evaluated: {only_run()}, ")
        found = gradcli(*arguments, "--json").json
        assert f"split {found['split']}, {found['samples']} samples" in expected
    gradcli("train", "dots.yaml", "-s", "train.best=val.loss", "--max-steps", "6")
    assert "measured: step 6 (best and last), split test" in gradcli("eval", "last").out


@pytest.mark.parametrize("which", ["best", "last", "12"])
def test_a_checkpoint_can_be_chosen(gradcli, which: str) -> None:
    gradcli("train", "dots.yaml", "-s", "train.keep=5")
    ended = gradcli("eval", "dots", "--json", "--checkpoint", which)
    assert ended.code == 0
    assert gradcli("eval", f"dots@{which}", "--json").json["steps"] == ended.json["steps"]
    assert gradcli("eval", f"dots@{which}", "--checkpoint", which).code == 0
    assert {"12": 12, "last": 18}.get(which, ended.json["steps"]) == ended.json["steps"]


def test_a_run_of_a_version_that_knew_fewer_keys(gradcli) -> None:
    trained = gradcli("train", "dots.yaml", "--json").json
    run = Path(trained["run"])
    known = yaml.safe_load((run / "resolved.yaml").read_text())
    del known["optim"]["amsgrad"]
    (run / "resolved.yaml").write_text(yaml.safe_dump(known))
    found = checkpoint.read(run / "checkpoints" / "step-00000018.safetensors")
    meta = replace(found.meta, config=known, config_sha256=config_sha256(known))
    checkpoint.write(run / "checkpoints", meta, found.tensors)
    ended = gradcli("eval", "last", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["metrics"]["test.loss"] == trained["metrics"]["test.loss"]
    assert gradcli("resume", "last", "-s", "train.epochs=4").code == 0


def test_an_unknown_checkpoint_or_split_is_named(gradcli) -> None:
    gradcli("train", "dots.yaml")
    ended = gradcli("eval", "last", "--checkpoint", "7")
    assert (ended.code, "no checkpoint '7'; steps: 18" in ended.err) == (7, True)
    ended = gradcli("eval", "last", "--split", "tset")
    assert (ended.code, "train, val, test" in ended.err) == (2, True)


def test_a_checkpoint_of_another_model_gets_the_whole_list(gradcli) -> None:
    gradcli("train", "dots.yaml", "--name", "small")
    other = gradcli("train", "dots.yaml", "--json", "-s", "model=[{linear: 2}]").json
    target = next(Path("runs/small").iterdir()) / "checkpoints" / "step-00000018.safetensors"
    source = Path(other["run"]) / "checkpoints" / "step-00000018.safetensors"
    target.write_bytes(source.read_bytes())
    ended = gradcli("eval", "small")
    assert ended.code == 7
    assert "is of another training: model" in ended.err


def test_the_run_is_not_changed(gradcli) -> None:
    run = Path(gradcli("train", "dots.yaml", "--json").json["run"])
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    gradcli("eval", "last")
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
