"""The models of the races: gradcli and torch begin one course with the same loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import course, workloads_gradcli


@pytest.mark.parity
@pytest.mark.parametrize("name", ["W4", "W6", "W7", "W8"])
def test_both_libraries_train_alike(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")
    from benchmarks import workloads_torch

    course.write(course.WORKLOADS[name], tmp_path / "file")
    read = course.read(course.WORKLOADS[name], tmp_path / "file")
    ours, theirs = (
        library.build(read, "eager").losses(3) for library in (workloads_gradcli, workloads_torch)
    )
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert len(set(ours)) == 3


@pytest.mark.parametrize("name", ["W6", "W8"])
def test_a_captured_workload_trains_as_an_eager_one(name: str, tmp_path: Path) -> None:
    course.write(course.WORKLOADS[name], tmp_path / "file")
    read = course.read(course.WORKLOADS[name], tmp_path / "file")
    eager, captured = (workloads_gradcli.build(read, mode) for mode in ("eager", "captured"))
    assert captured.losses(4) == eager.losses(4)
    assert captured.remark() == ""
