"""Ten seconds of spoilt inputs for each parser: every one is read, or refused in words."""

from __future__ import annotations

import shutil
from pathlib import Path

import fuzz
import pytest
from parsing import input_of

FIRST = 1_000_000  # other numbers than those of a run by hand, which begin at 0
SECONDS = 10
FLOOR = 10  # inputs that the slowest parser reads in that time on a busy machine


@pytest.mark.parametrize("name", fuzz.PARSERS)
def test_ten_seconds_of_spoilt_inputs_end_in_words(name: str) -> None:
    pytest.importorskip(fuzz.NEEDS.get(name, "gradcli"), reason="it reads them")
    report = fuzz.fuzz(name, SECONDS, FIRST)
    assert [str(fault) for fault in report.causes.values()] == []
    assert report.inputs >= FLOOR
    assert report.accepted > 0
    assert (report.refused > 0) == (name != "log")  # a damaged log ends no resume


OF_RUNS = ("checkpoint", "log", "run-files")  # each run that is trained for them has other times


@pytest.mark.parametrize("name", sorted(fuzz.PARSERS.keys() - OF_RUNS))
def test_a_number_makes_the_same_input_each_time(name: str, tmp_path: Path) -> None:
    if name != "pictures":  # some are drawn without it
        pytest.importorskip(fuzz.NEEDS.get(name, "gradcli"), reason="it writes them")
    folder = tmp_path / "files"  # whose name stands in some inputs
    inputs = []
    for _ in range(2):
        parser = fuzz.begun(name, folder)
        inputs.append([input_of(parser, name, number) for number in range(5)])
        shutil.rmtree(folder)
    assert inputs[0] == inputs[1]
