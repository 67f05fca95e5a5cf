"""Some seconds of damaged inputs for each parser: each is read, or raises an error of gradcli.

Three seconds each; CI fuzzes for ten on the kernels that are built with sanitizers.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fuzz
import pytest
from parsing import input_of

FIRST = 1_000_000  # other numbers than those of a run by hand, which begin at 0
SECONDS = float(os.environ.get("GRADCLI_FUZZ_SECONDS", "3"))
LONGEST = 10.0  # where a busy machine or a slow parser reads too few in that time
FLOOR = 10  # inputs


@pytest.mark.parametrize("name", fuzz.PARSERS)
def test_damaged_inputs_end_in_values_or_errors(name: str) -> None:
    pytest.importorskip(fuzz.NEEDS.get(name, "gradcli"), reason="it reads them")
    report = fuzz.fuzz(name, SECONDS, FIRST)
    if report.inputs < FLOOR or not report.accepted or not report.refused:
        report = fuzz.fuzz(name, LONGEST, FIRST)
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
