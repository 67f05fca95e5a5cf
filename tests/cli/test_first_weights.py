"""`gradcli train --from RUN[@W]`: a new run with the weights of another one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from points import only_run
from refusals import gradcli, refused

from gradcli.train import checkpoint
from gradcli.train.checkpoint import Checkpoint

__all__ = ["gradcli", "refused"]

NOTHING = ("-s", "train.epochs=0", "--name", "new", "--json")


@pytest.fixture
def run(gradcli) -> Path:
    """A run of 18 steps, all checkpoints kept; the best is not the last."""
    rate = ("-s", "optim.lr=0.5", "-s", "train.eval_every=3", "-s", "train.checkpoint_every=3")
    assert gradcli("train", "dots.yaml", *rate, "-s", "train.keep=9").code == 0
    assert (only_run() / "best").read_text() != (only_run() / "last").read_text()
    return only_run()


def first(run: str) -> Checkpoint:
    return checkpoint.read(Path(run) / "checkpoints" / "step-00000000.safetensors")


@pytest.mark.parametrize("which", ["@best", "@last", "@6", ""])
def test_it_begins_with_those_weights(gradcli, run: Path, which: str) -> None:
    ended = gradcli("train", "dots.yaml", "--from", f"dots{which}", *NOTHING)
    assert ended.code == 0
    source = gradcli("eval", f"dots{which}", "--json").json
    assert ended.json["weights_sha256"] == source["weights_sha256"]
    resolved = yaml.safe_load((Path(ended.json["run"]) / "resolved.yaml").read_text())
    assert resolved["pretrained"]["from"].endswith(checkpoint.file_name(source["steps"]))
    state = first(ended.json["run"]).tensors["optim.exp_avg.0"]
    assert bytes(state.data) == bytes(len(state.data))


def test_it_is_short_for_a_key_and_both_are_one_too_many(gradcli, refused, run: Path) -> None:
    for text in ("dots@6", str(run) + "@6", str(run / "checkpoints" / checkpoint.file_name(6))):
        short = gradcli("train", "dots.yaml", "--from", text, *NOTHING).json
        long = gradcli("train", "dots.yaml", "-s", f"pretrained.from={text}", *NOTHING).json
        assert short["weights_sha256"] == long["weights_sha256"]
        shutil.rmtree("runs/new")
    refused(
        2, "overridden twice", "train", "dots.yaml", "--from", "dots", "-s", "pretrained.from=x"
    )


def test_a_path_in_a_config_begins_at_the_config(gradcli, run: Path) -> None:
    Path("elsewhere").mkdir()
    shutil.move(run, "elsewhere/old")
    text = Path("dots.yaml").read_text() + "pretrained: {from: old@6}\n"
    Path("elsewhere/new.yaml").write_text(text)
    assert gradcli("train", "elsewhere/new.yaml", *NOTHING).code == 0


def test_a_run_goes_on_without_the_one_that_it_began_with(gradcli, run: Path) -> None:
    gradcli("train", "dots.yaml", "--from", "dots", "--name", "new", "--max-steps", "4")
    (new,) = Path("runs/new").iterdir()
    resolved = yaml.safe_load((new / "resolved.yaml").read_text())
    taken = resolved["pretrained"]["from"]
    assert taken == str(run.resolve() / "checkpoints" / (run / "best").read_text().strip())
    shutil.rmtree(run)
    assert gradcli("eval", "new").code == 0
    assert gradcli("resume", "new", "--json").json["steps"] == 18
    assert gradcli("train", str(new / "resolved.yaml")).code == 7


def test_the_state_of_the_optimizer_comes_too(gradcli, run: Path) -> None:
    more = ("--from", "dots@6", "--from-optimizer")
    ended = gradcli("train", "dots.yaml", *more, *NOTHING[:-1])
    assert "the optimizer's state after 6 steps begin as in" in ended.err
    (new,) = Path("runs/new").iterdir()
    found, old = first(str(new)), checkpoint.read(run / "checkpoints" / NAME)
    assert found.meta.step == 0
    state = {name: bytes(one.data) for name, one in old.tensors.items()}
    assert {name: bytes(one.data) for name, one in found.tensors.items()} == state
    assert any(state[name] != bytes(len(state[name])) for name in state if "exp_avg" in name)


NAME = checkpoint.file_name(6)


def test_moments_and_their_count_make_the_next_step_that_of_the_old_run(gradcli, run: Path) -> None:
    """One batch of all samples and no dropout: the step is the same at any number."""
    same = ("-s", "model=[{linear: 2}]", "-s", "train.batch=42", "-s", "train.epochs=null")
    keep = ("-s", "train.checkpoint_every=1", "-s", "train.keep=9", "--json")
    whole = gradcli("train", "dots.yaml", *same, *keep, "-s", "train.steps=5", "--name", "whole")
    more = ("-s", "train.steps=2", "--name", "more", "--from", "whole@3", "--from-optimizer")
    part = gradcli("train", "dots.yaml", *same, *keep, *more)
    weights = [
        checkpoint.read(Path(ended.json["run"]) / "checkpoints" / checkpoint.file_name(step))
        for ended, step in ((whole, 5), (part, 2))
    ]
    for name in ("model.0.weight", "optim.step.0"):
        old, new = (_floats(one.tensors[name].data) for one in weights)
        assert new == pytest.approx(old, rel=1e-4, abs=1e-6)


def _floats(data: memoryview) -> list[float]:
    return list(memoryview(bytes(data)).cast("f"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["optim.name=sgd", "optim.lr=1"], "optim: it has the state of adam, the config sgd"),
        (["optim.no_decay=[bias]"], 'optim.no_decay: it was made with [], the config has ["bias"]'),
        (["freeze=['0']"], 'freeze: it was made with [], the config has ["0"]'),
        (["optim.amsgrad=true"], "max_exp_avg_sq.0 F32[8, 2] is not in it"),
        (
            ["model=[{linear: 8}, {linear: {out: 2, bias: false}}]", "pretrained.layers=['0']"],
            "1.weight F32[2, 8] is not in it; did you mean '2.weight'?",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_one_message(
    refused, run: Path, changes: list[str], message: str
) -> None:
    more = [text for change in changes for text in ("-s", change)]
    ended = refused(7, message, "train", "dots.yaml", "--from", "dots", "--from-optimizer", *more)
    assert "the optimizer's state does not come from" in ended.err
    assert "without pretrained.optimizer the weights alone are taken" in ended.err
    assert ended.err.count("error") == 1


def test_a_damaged_checkpoint_is_not_taken(refused, run: Path) -> None:
    file = run / "checkpoints" / NAME
    data = file.read_bytes()
    file.write_bytes(data[:-5] + bytes([data[-5] ^ 16]) + data[-4:])
    refused(7, "it is damaged", "train", "dots.yaml", "--from", "dots@6")


def test_check_and_train_see_the_same_run(gradcli, run: Path) -> None:
    ended = gradcli("check", "dots.yaml", "-s", "pretrained.from=dots@best", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["exit_code"] == 0
