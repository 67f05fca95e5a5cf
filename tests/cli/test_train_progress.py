"""Progress: a bar on a terminal, plain lines elsewhere, and never a reason to stop."""

from __future__ import annotations

import io
import json
import math
import sys

import pytest

from gradcli.cli import progress
from gradcli.cli.progress import Progress, say_result
from gradcli.train.report import Result

RESULT = Result("runs/a/1", "finished", 3, 1.5, {"test.loss": math.nan, "test.accuracy": 0.5}, "ab")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def follow(reporter: Progress) -> None:
    reporter.started("runs/a/1", 0, 3, 2)
    for step in (1, 2, 3):
        reporter.step(step, 0.25, 1e-3)
    reporter.evaluated(3, {"val.loss": 0.125})
    reporter.note("something to know")
    reporter.finished(RESULT)


def test_a_terminal_gets_a_bar_with_loss_rate_and_time(monkeypatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    follow(Progress())
    text = screen.getvalue()
    assert "3/3" in text
    assert "epoch 1/2" in text
    assert "epoch 2/2" in text
    assert "loss 0.25, lr 0.001" in text
    assert "val.loss 0.1250" in text
    assert "something to know" in text


def test_elsewhere_lines_come_at_most_every_few_seconds(capsys, monkeypatch) -> None:
    follow(Progress())
    quiet = capsys.readouterr()
    assert quiet.out == ""
    assert quiet.err.splitlines() == [
        "run runs/a/1: step 0 of 3, on cpu",
        "epoch 2/2  step 3/3  val.loss 0.1250",
        "something to know",
    ]
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    follow(Progress())
    assert "epoch 1/2  step 2/3  loss 0.25  lr 0.001" in capsys.readouterr().err


def test_json_keeps_both_streams_clean(capsys) -> None:
    follow(Progress(as_json=True))
    say_result(RESULT, as_json=True)
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out, parse_constant=pytest.fail)
    assert found["metrics"]["test.loss"] is None
    assert found["metrics"]["nonfinite"] == {"test.loss": "nan"}


def test_a_closed_stream_ends_no_training(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Closed())
    follow(Progress())


def test_the_result_is_told_in_three_lines(capsys) -> None:
    say_result(RESULT, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "finished: runs/a/1, 3 steps, 1.5 s",
        "test.loss nan  test.accuracy 0.5000",
        "weights sha256 ab",
    ]
