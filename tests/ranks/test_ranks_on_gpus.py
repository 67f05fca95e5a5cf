"""Ranks of mpirun whose gradients lie on GPUs, over the stand-ins for NVIDIA's driver and NCCL."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

from jobs import started

sys.path.append(str(Path(__file__).parents[1] / "gpu"))  # where the stand-ins are built
import nccl_standin

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(("nccl", "launches"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("how", ["exact", "library"])
def test_two_ranks_have_the_bits_of_one(
    nccl: bool, launches: int, how: str, tmp_path: Path
) -> None:
    """Over the host's memory and over NCCL; the library's own sum is at least one for both."""
    case = ("-m", "cuda_process", "case")
    arguments = "a_rank_of_a_launcher", how, str(launches), str(tmp_path)
    with started(
        2, *case, *arguments, cwd=tmp_path, variables=nccl_standin.environment(nccl)
    ) as job:
        ended = job.end(120)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    first, second = [(tmp_path / f"rank{rank}").read_bytes() for rank in range(2)]
    assert first == second
    nccl_standin.check(nccl_standin.started("one_rank", tmp_path, nccl=False))
    if how == "exact":
        assert first == (tmp_path / "alone").read_bytes()
