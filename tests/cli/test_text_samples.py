"""`train.sample`: text that a model writes as it is trained, at no bit's cost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from points import Ended, gradcli

from gradcli.errors import NumericsError
from gradcli.train import generate

__all__ = ["gradcli"]

WORDS = """\
gradcli: 1
name: words
data: {name: text, file: words.txt, context: 8, split: {train: 80%, val: 20%}}
model: [embed: 8, dropout: 0.1, linear: $data.vocab]
loss: cross_entropy
optim: {name: adam, lr: 0.01}
train: {steps: 20, batch: 8, eval_every: 5, checkpoint_every: 1, seed: 3,
  sample: {prompt: "the ", tokens: 30}}
"""
NO_VAL = ("-s", "data.split={train: 100%, val: null}", "-s", "train.eval_every=null")
# The model reads eight characters, and no fewer.
WHOLE = "model=[{embed: 8}, flatten, {linear: 88}, {reshape: [8, 11]}]"


@pytest.fixture
def words(gradcli) -> Path:
    Path("words.txt").write_text("the cat sat on the mat\n" * 40)
    path = Path("words.yaml")
    path.write_text(WORDS)
    return path


def log_of(runs: str = "runs") -> list[dict[str, Any]]:
    (run,) = Path(runs, "words").iterdir()
    lines = (run / "log.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


def samples(runs: str = "runs") -> list[dict[str, Any]]:
    return [one for one in log_of(runs) if one["event"] == "sample"]


def sha256(ended: Ended) -> str:
    return ended.json["weights_sha256"]


def test_a_text_is_logged_behind_each_evaluation_and_shown_on_one_line(gradcli, words) -> None:
    ended = gradcli("train", "words.yaml")
    assert ended.code == 0
    log = log_of()
    order = [(one["event"], one["step"]) for one in log if one["event"] != "step"]
    assert order == [(event, step) for step in (5, 10, 15, 20) for event in ("eval", "sample")]
    for one in samples():
        assert set(one) == {"event", "step", "prompt", "text"}
        assert one["prompt"] == "the "
        assert len(one["text"]) == 30
        assert set(one["text"]) <= set("the cat sat on the mat\n")
    assert len({one["text"] for one in samples()}) == 4
    lines = [line for line in ended.err.splitlines() if "sample: the " in line]
    assert len(lines) == 4
    assert "sample" not in gradcli("train", "words.yaml", "--json").err


def test_where_nothing_is_evaluated_each_epoch_ends_with_a_text(gradcli, words) -> None:
    assert gradcli("train", "words.yaml", *NO_VAL, "-s", "train.batch=32").code == 0
    assert [one["step"] for one in samples()] == [4, 8, 12, 16, 20]  # 114 windows


@pytest.mark.parametrize("more", [(), NO_VAL, ("-s", "train.ema=0.9")])
def test_they_change_no_bit_and_a_resumed_run_writes_the_same(gradcli, words, more) -> None:
    whole = gradcli("train", "words.yaml", "--json", "--runs", "whole", *more)
    without = gradcli("train", "words.yaml", "--json", "-s", "train.sample=null", *more)
    assert sha256(whole) == sha256(without)
    for steps in ("5", "7", "15"):
        runs = f"cut-{steps}"
        gradcli("train", "words.yaml", "--max-steps", steps, "--runs", runs, *more)
        # As a kill leaves it: the newest checkpoint is of a step before.
        newest = max(Path(runs).rglob("step-*.safetensors"))
        newest.unlink()
        assert sha256(gradcli("resume", "last", "--json", "--runs", runs)) == sha256(whole)
        assert samples(runs) == samples("whole")


def test_a_signal_drops_the_text_and_its_evaluation(gradcli, words, monkeypatch) -> None:
    whole = gradcli("train", "words.yaml", "--json", "--runs", "whole")
    usual = generate.continued

    def slow(*arguments: Any) -> Iterator[str]:
        for number, piece in enumerate(usual(*arguments)):
            if number == 3 and not samples():
                os.kill(os.getpid(), signal.SIGTERM)
            yield piece

    monkeypatch.setattr(generate, "continued", slow)
    assert gradcli("train", "words.yaml").code == 75
    assert {one["event"] for one in log_of()} == {"step"}
    monkeypatch.setattr(generate, "continued", usual)
    assert sha256(gradcli("resume", "last", "--json")) == sha256(whole)
    events = [[(one["event"], one["step"]) for one in log_of(runs)] for runs in ("runs", "whole")]
    assert [one for one in events[0] if one[0] != "step"] == [
        one for one in events[1] if one[0] != "step"
    ]
    assert samples() == samples("whole")


def test_a_resume_may_ask_for_another_text_and_forks_nothing(gradcli, words) -> None:
    whole = gradcli("train", "words.yaml", "--json", "--runs", "whole")
    gradcli("train", "words.yaml", "--max-steps", "7")
    ended = gradcli("resume", "last", "--json", "-s", 'train.sample={prompt: "a", tokens: 5}')
    assert sha256(ended) == sha256(whole)
    assert [(one["prompt"], len(one["text"])) for one in samples()] == [
        ("the ", 30), ("a", 5), ("a", 5), ("a", 5)
    ]  # fmt: skip
    (run,) = Path("runs/words").iterdir()
    assert "forks" not in json.loads((run / "manifest.json").read_text())


def test_a_bare_text_is_the_prompt_and_temperature_0_is_the_likeliest(gradcli, words) -> None:
    assert gradcli("train", "words.yaml", "-s", "train.sample=the ").code == 0
    assert {len(one["text"]) for one in samples()} == {100}
    likeliest = ("-s", "train.sample={prompt: the, tokens: 30, temperature: 0}")
    gradcli("train", "words.yaml", "--runs", "zero", *likeliest)
    said = gradcli(
        "predict", str(next(Path("zero/words").iterdir())), "--prompt", "the", "--json",
        "--temperature", "0", "--tokens", "30",
    )  # fmt: skip
    assert samples("zero")[-1]["text"] == said.json["text"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.sample={prompt: Zürich}", "train.sample.prompt: the character 'Z' does not occur"),
        ('train.sample={prompt: ""}', "train.sample.prompt must have at least one character"),
        ("train.sample={prompt: a, tokens: 0}", "a whole number from 1 to 10000"),
        ("train.sample={prompt: a, tokens: 10001}", "a whole number from 1 to 10000"),
        ("train.sample={prompt: a, temperature: -1}", "a finite number >= 0"),
        ("train.sample={promt: a}", "unknown key 'promt' in train.sample"),
        (WHOLE, "train.sample: this model cannot write on, one token at a time: "),
    ],
)
def test_a_prompt_that_nobody_can_go_on_from_is_refused(gradcli, words, change, message) -> None:
    """Row 85."""
    ended = gradcli("train", "words.yaml", "-s", change)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert not Path("runs").exists()


def test_data_that_is_no_text_is_named_with_a_cure(gradcli) -> None:
    ended = gradcli("check", "dots.yaml", "-s", "train.sample=the ")
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "error[E109] train.sample: only a model of text writes on behind a prompt" in said
    assert "leave train.sample out" in said


def test_a_text_that_cannot_be_drawn_costs_no_training(gradcli, words, monkeypatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise NumericsError("pick: the logits are not all finite, no token can be chosen")

    whole = gradcli("train", "words.yaml", "--json", "--runs", "whole")
    monkeypatch.setattr(generate, "continued", broken)
    ended = gradcli("train", "words.yaml")
    assert ended.code == 0
    assert sha256(whole) in ended.out
    assert "warning: no sample at step 5: pick: the logits are not all finite" in ended.err
    assert not samples()
