"""The workloads: the same numbers for every competitor."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import course


@pytest.mark.parametrize("name", ["W1", "W7", "W8"])
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    workload = course.WORKLOADS[name]
    course.write(workload, tmp_path / "file")
    found = course.read(workload, tmp_path / "file")
    assert {p.name: 4 * p.size for p in workload.parameters} == {
        name: len(view) for name, view in found.weights.items()
    }
    for view, side in ((found.x, workload.x), (found.y, workload.y)):
        numbers = view.cast("f" if side.below is None else "q").tolist()
        assert len(numbers) == course.BATCHES * side.size
        low, high = (-1, 1) if side.below is None else (0, side.below - 1)
        assert low <= min(numbers) < max(numbers) <= high


def test_weights_begin_within_their_bound(tmp_path: Path) -> None:
    workload = course.WORKLOADS["W1"]
    course.write(workload, tmp_path / "file")
    first = course.read(workload, tmp_path / "file").weights["layers.0.weight"].cast("f").tolist()
    assert max(map(abs, first)) <= 784**-0.5
    assert max(map(abs, first)) > 0.99 * 784**-0.5


@pytest.mark.parametrize("workload", course.WORKLOADS.values(), ids=list(course.WORKLOADS))
def test_scans_take_the_batches_in_turn(workload: course.Workload) -> None:
    scans = course.Course(workload, {}, memoryview(b""), memoryview(b"")).scan_batches()
    order = [number for scan in scans for number in scan]
    assert order == [i % course.BATCHES for i in range(len(order))]
    assert set(order) == set(range(course.BATCHES))
