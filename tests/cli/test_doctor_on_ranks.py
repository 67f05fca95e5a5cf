"""What `gradcli doctor` tells of ranks, without MPI: threads stand for them."""

from __future__ import annotations

from typing import Any

import pytest
from rank_threads import ThreadGroup, on_ranks

from gradcli.cli import ranks_report
from gradcli.engine import distributed

OWN = {
    "instruction_set": "avx2",
    "threads": 2,
    "devices": {"cpu": "", "cuda": "no driver", "metal": "no Mac"},
    "gradcli": "0.1.0",
    "ok": True,
}


@pytest.fixture
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "mpi_version", lambda: "MPICH 5.0.2")
    monkeypatch.setattr(ranks_report, "SIZES", (1 << 10, 1 << 20))
    monkeypatch.setattr(ranks_report, "VOLUME", 1 << 12)


def own_of(rank: int) -> dict[str, Any]:
    """Rank 2 computes wrongly, and has another instruction set."""
    return {**OWN, "ok": rank != 2, "instruction_set": "baseline" if rank == 2 else "avx2"}


def reports(size: int) -> list[dict[str, Any]]:
    def report(group: ThreadGroup) -> dict[str, Any]:
        return ranks_report.ranks_report(group, own_of(group.rank))

    return on_ranks(size, report)


@pytest.mark.usefixtures("few_sizes")
def test_all_ranks_have_one_report() -> None:
    first, *others = reports(4)
    assert all(other == first for other in others)
    assert [one["rank"] for one in first["ranks"]] == [0, 1, 2, 3]
    assert [one["host"] for one in first["ranks"]] == ["node0", "node0", "node1", "node1"]
    assert [one["bytes"] for one in first["sums"]] == [1 << 10, 1 << 20]
    assert all(one["exact_ms"] > 0 and one["library_ms"] > 0 for one in first["sums"])
    assert first["mpi"] == "MPICH 5.0.2"
    assert not first["ok"]


@pytest.mark.usefixtures("few_sizes")
def test_ranks_that_are_alike_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    ranks_report.show(reports(4)[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ranks      4 on 2 hosts, MPICH 5.0.2"
    assert lines[1].strip() == "node0: ranks 0 to 1, 2 cores each, avx2, cpu"
    assert "node1: rank 2, 2 cores each, baseline, cpu, its kernels compute wrongly" in lines[2]
    assert "node1: rank 3," in lines[3]
    assert [line.split()[:2] for line in lines[5:]] == [["1", "KiB"], ["1", "MiB"]]


def test_the_sizes_go_from_1_kib_to_64_mib() -> None:
    assert (ranks_report.SIZES[0], ranks_report.SIZES[-1]) == (1 << 10, 1 << 26)
