"""The race of growing models: the same ones in both libraries, their verdicts and plots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks import grow_cases, grow_ratios, results, tables, targets
from benchmarks.__main__ import main
from benchmarks.grow_cases import AXES
from gradcli import engine


@pytest.mark.parametrize("axis", AXES)
def test_a_captured_step_of_each_axis_lowers_the_loss(axis: str) -> None:
    step, x, y = grow_cases.step(engine, axis, AXES[axis].sizes[0])
    captured = engine.capture(step)
    losses = [captured(x, y).item() for _ in range(30)]
    assert captured.fallback_reason == ""
    assert losses[-1] < losses[0]


@pytest.mark.parity
@pytest.mark.parametrize("axis", AXES)
def test_a_step_is_the_same_calculation_in_torch(axis: str) -> None:
    torch = pytest.importorskip("torch")
    size = AXES[axis].sizes[1]
    model, x, y = AXES[axis].build(torch, size)
    ours, _, _ = AXES[axis].build(engine, size)
    state = {name: engine.tensor(value.numpy()) for name, value in model.state_dict().items()}
    ours.load_state_dict(state)
    expected = model(x)
    assert ours(engine.tensor(x.numpy())).tolist() == [
        pytest.approx(row, rel=1e-4, abs=1e-5) for row in expected.tolist()
    ]
    assert expected.shape[0] == y.shape[0]


# The binary logarithm of the last step's work: sizes double but for the batch, which grows by 4.
GROWTH = {"width": 2, "depth": 1, "batch": 2, "channels": 2, "pixels": 2, "context": 1.3}


@pytest.mark.parametrize("axis", AXES)
def test_work_grows_as_the_axis_says(axis: str) -> None:
    before, last = AXES[axis].sizes[-2:]
    grown = AXES[axis].work(last) / AXES[axis].work(before)
    assert math.log2(grown) == pytest.approx(GROWTH[axis], abs=0.15)


def row(ours: float, torch: float) -> dict[str, dict[str, float]]:
    return {"gradcli": {"ms": ours}, "torch": {"ms": torch}}


RESULT: dict[str, Any] = {
    "axes": {
        "batch": {"64": row(0.1, 0.3), "256": row(0.4, 0.6), "1024": row(2.0, 1.8)},
        "depth": {"1": {"gradcli": {"ms": 0.1}, "torch": {"missing": "no torch"}}},
    }
}


def test_verdicts_name_the_size_that_is_furthest_behind() -> None:
    slowest, batch, depth = targets.VERDICTS["grow"](RESULT)
    assert slowest.what.endswith("the slowest (batch 1024)")
    assert slowest.figure == pytest.approx(0.9)
    assert batch.figure == pytest.approx(5 / 4)  # five times the time for four times the work
    assert depth.figure is None


def test_plots_are_written_beside_the_page(tmp_path: Path) -> None:
    document = results.document("grow", RESULT, quick=False)
    results.write(tmp_path, document)
    page = tmp_path / "page.md"
    ran = CliRunner().invoke(main, ["--out", str(tmp_path), "table", "--page", str(page)])
    assert ran.exit_code == 0, ran.output
    assert f"]({tables.PLOTS})" in page.read_text()
    assert "| 64 to 1024 | 0.1 to 2 | 0.3 to 1.8 | 0.90 to 3.00 | 1.25 |" in page.read_text()
    drawn = ElementTree.fromstring((tmp_path / tables.PLOTS).read_text())
    lines = [element for element in drawn if element.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [3, 3, 1, 0]


def test_an_empty_result_has_plots_and_no_lines() -> None:
    assert "polyline" not in grow_ratios.plots({"axes": {"depth": {}}})
    assert list(grow_ratios.lines({"axes": {}})) == []
