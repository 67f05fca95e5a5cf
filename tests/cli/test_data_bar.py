"""Long work on data: a bar with rate and time left in a terminal, two lines elsewhere."""

from __future__ import annotations

import io
import re
import sys

import pytest

from gradcli import watching
from gradcli.cli import data_bar
from gradcli.cli.bar import bar_format


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def every_work_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_bar, "SHORT", 0.0)


def work(unit: str = "row", total: int | None = 10, end: int = 10) -> None:
    data_bar.watch("preparing x.csv", 0, total, unit)
    data_bar.watch("preparing x.csv", 4, total, unit)
    data_bar.watch("preparing x.csv", end, 10 if total is None else total, unit)


def test_elsewhere_begin_and_end_have_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    work("bytes", 10)
    work("row", None)
    begin = r"preparing x\.csv"
    assert re.fullmatch(
        rf"{begin}: 10 rows\n{begin}: 10 rows in \d+\.\d s\n"
        rf"{begin}: 10 bytes\n{begin}: 10 bytes in \d+\.\d s\n"
        rf"{begin}\n{begin}: 10 rows in \d+\.\d s\n",
        capsys.readouterr().err,
    )


def test_short_work_has_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_bar, "SHORT", float("inf"))
    work()
    assert re.fullmatch(r"preparing x\.csv: 10 rows in \d+\.\d s\n", capsys.readouterr().err)


def test_what_is_given_up_has_no_end(capsys: pytest.CaptureFixture[str]) -> None:
    work(end=watching.GIVEN_UP)
    assert capsys.readouterr().err == "preparing x.csv: 10 rows\n"
    work()
    assert capsys.readouterr().err.count("\n") == 2


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    data_bar.watch("preparing x.csv", 0, 10, "row")
    bar = data_bar._works["preparing x.csv"]._bar
    data_bar.watch("preparing x.csv", 4, 10, "row")
    assert (bar.n, bar.total, bar.unit) == (4, 10, " rows")
    data_bar.watch("preparing x.csv", 10, 10, "row")
    assert "preparing x.csv:   0%|" in screen.getvalue()
    assert re.search(r"preparing x\.csv: 10 rows in \d+\.\d s\n$", screen.getvalue())


@pytest.mark.parametrize("columns", [100, 60])
def test_a_narrow_bar_without_figures_has_its_speed(columns: int) -> None:
    assert str(bar_format(columns)).rstrip("]").endswith("{remaining}, {rate_fmt}")
    assert str(bar_format(40)).endswith("{remaining}")
    assert "rate" not in str(bar_format(columns, "loss 1, lr 2"))
