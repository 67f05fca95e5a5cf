"""Sums between GPUs, over the stand-ins for NVIDIA's driver and for NCCL: two processes each."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

from nccl_standin import check, started


def test_two_ranks_have_the_bits_of_one(tmp_path: Path) -> None:
    """A captured step is one launch, which sums once."""
    check(started("one_rank", tmp_path))
    check(*(started("a_rank_over_nccl", rank, "exact", tmp_path) for rank in range(2)))
    alone, *ranks = [(tmp_path / name).read_bytes() for name in ("alone", "rank0", "rank1")]
    assert ranks == [alone, alone]


def test_nccls_own_sum_gives_all_ranks_the_same(tmp_path: Path) -> None:
    check(*(started("a_rank_over_nccl", rank, "library", tmp_path) for rank in range(2)))
    first, second = [(tmp_path / f"rank{rank}").read_bytes() for rank in range(2)]
    assert first == second


def test_without_nccl_it_says_what_to_install(tmp_path: Path) -> None:
    check(started("without_nccl", nccl=False))


def test_what_nccl_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    check(started("what_nccl_refuses", tmp_path))


def test_there_is_no_way_between_gpus_without_several_on_cuda() -> None:
    check(started("the_host_alone_has_no_way_between_gpus"))
