"""Which way gradients take between GPUs, by what the ranks have."""

from __future__ import annotations

import pytest

from gradcli.engine.distributed.gpus import Offer, rejection

NAMES = ("rank 0 on a", "rank 1 on a", "rank 2 on b")
LACKS = Offer("NCCL cannot be loaded")


@pytest.mark.parametrize(
    ("offers", "why"),
    [
        ([Offer("", "2.28.3", gpu) for gpu in "xyz"], ""),
        ([LACKS] * 3, "NCCL cannot be loaded on all ranks"),
        ([Offer("", "2.28.3", "x"), LACKS, LACKS], f"{LACKS.lack} on rank 1 on a, rank 2 on b"),
        ([Offer("A=0"), LACKS, Offer("A=0")], "A=0 on rank 0 on a, rank 2 on b"),
        (
            [Offer("", "2.28.3", "x"), Offer("", "2.28.3", "y"), Offer("", "2.27.5", "z")],
            "rank 2 on b has NCCL 2.27.5, rank 0 on a 2.28.3",
        ),
        ([Offer("", "2.28.3", gpu) for gpu in "xyy"], "rank 1 on a and rank 2 on b share a GPU"),
    ],
)
def test_nccl_needs_all_ranks(offers: list[Offer], why: str) -> None:
    assert rejection(NAMES, offers) == why
