"""Progress: a bar on a terminal, plain lines elsewhere, and never a reason to stop."""

from __future__ import annotations

import io
import json
import math
import sys

import pytest

from gradcli.cli import progress
from gradcli.cli.progress import ProgressReporter, say_result
from gradcli.train.report import Result

RESULT = Result("runs/a/1", "finished", 3, 1.5, {"test.loss": math.nan, "test.accuracy": 0.5}, "ab")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def follow(reporter: ProgressReporter) -> None:
    reporter.on_start("runs/a/1", 0, 3, 2)
    for step in (1, 2, 3):
        reporter.on_step(step, 0.25, 1e-3)
    reporter.on_evaluation(3, {"val.loss": 0.125})
    reporter.note("something to know")
    reporter.on_finish(RESULT)


def test_a_terminal_gets_a_bar_with_loss_rate_and_time(monkeypatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    follow(ProgressReporter())
    text = screen.getvalue()
    assert "3/3" in text
    assert "epoch 1/2" in text
    assert "epoch 2/2" in text
    assert "loss 0.2500, lr 0.001" in text
    assert "val.loss 0.1250" in text
    assert "something to know" in text


LINES = [
    "epoch 1/2  step 1/3  loss 0.2500  lr 0.001",
    "epoch 2/2  step 3/3  loss 0.2500  lr 0.001  val.loss 0.1250",
    "something to know",
]


def test_elsewhere_there_are_lines(capsys) -> None:
    follow(ProgressReporter())
    quiet = capsys.readouterr()
    assert quiet.out == ""
    assert quiet.err.splitlines() == LINES


def test_elsewhere_a_line_comes_every_few_seconds(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    follow(ProgressReporter())
    lines = capsys.readouterr().err.splitlines()
    assert "epoch 1/2  step 2/3  loss 0.2500  lr 0.001" in lines


def test_without_evaluations_an_epoch_has_a_line(capsys) -> None:
    reporter = ProgressReporter(evaluates=False)
    reporter.on_start("runs/a/1", 0, 7, 2)
    for step in range(1, 8):
        reporter.on_step(step, 1 / step, 1e-3)
    reporter.on_finish(RESULT)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[3] for line in lines] == ["1/7", "2/7", "4/7", "6/7", "7/7"]
    assert lines[-1] == "epoch 4/4  step 7/7  loss 0.1429  lr 0.001"


def test_many_short_epochs_are_no_flood(capsys) -> None:
    reporter = ProgressReporter(evaluates=False)
    reporter.on_start("runs/a/1", 0, 3000, 3)
    for step in range(1, 3001):
        reporter.on_step(step, 0.5, 1e-3)
    reporter.on_finish(RESULT)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("epoch    1/1000  step    1/3000  loss 0.5000")  # one column each
    assert lines[-1].startswith("epoch 1000/1000  step 3000/3000")
    assert len(lines) < 20


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (0.0, "0.0000"),
        (2.30258, "2.3026"),
        (0.001, "0.0010"),
        (1e-7, "1e-07"),
        (123456.0, "1.23e+05"),
    ],
)
def test_a_loss_of_any_size_is_short(loss: float, expected: str, capsys) -> None:
    reporter = ProgressReporter()
    reporter.on_start("runs/a/1", 0, 3, 2)
    reporter.on_step(1, loss, 0.1)
    assert capsys.readouterr().err == f"epoch 1/2  step 1/3  loss {expected}  lr 0.1\n"


def test_an_end_that_comes_early_has_the_last_loss(capsys) -> None:
    reporter = ProgressReporter()
    reporter.on_start("runs/a/1", 4, 100, 10)
    for step in (5, 6, 7):
        reporter.on_step(step, 1 / step, 1e-3)
    reporter.close()
    reporter.close()
    assert capsys.readouterr().err.splitlines() == [
        "epoch  1/10  step   5/100  loss 0.2000  lr 0.001",
        "epoch  1/10  step   7/100  loss 0.1429  lr 0.001",
    ]


def test_json_keeps_both_streams_clean(capsys) -> None:
    follow(ProgressReporter(as_json=True))
    say_result(RESULT, as_json=True)
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out, parse_constant=pytest.fail)
    assert found["metrics"]["test.loss"] is None
    assert found["metrics"]["nonfinite"] == {"test.loss": "nan"}


def test_a_closed_stream_ends_no_training(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Closed())
    follow(ProgressReporter())


def test_the_result_is_told_in_three_lines(capsys) -> None:
    say_result(RESULT, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "finished: runs/a/1, 3 steps, 1.5 s",
        "test.loss nan  test.accuracy 0.5000",
        "weights sha256 ab",
    ]
