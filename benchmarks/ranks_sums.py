"""What each rank of benchmarks/ranks.py runs: sums along the tree against MPI_Allreduce."""

from __future__ import annotations

import json
import operator
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from gradcli import engine
from gradcli.engine import distributed
from gradcli.engine.distributed import Sum

LENGTHS = (203_776, 2_684_928, 16_777_216)  # numbers: mnist.yaml's, a small GPT's, 64 MB
MPIS_OWN = "MPI_Allreduce"
WARM = 3


def seconds(run: Callable[[], object]) -> float:
    """How long the slowest rank takes, from the moment when all are there."""
    MPI.COMM_WORLD.Barrier()
    began = time.perf_counter()
    run()
    return float(MPI.COMM_WORLD.allreduce(time.perf_counter() - began, MPI.MAX))


def measured(length: int, rounds: int) -> dict[str, Any]:
    """Interleaved sums: medians in milliseconds, and of the ratios to MPI's."""
    group = distributed.group()
    exact = Sum(group.size, length, group=group)
    library = Sum(group.size, length, how="library", group=group)
    out = engine.empty(length)
    rows, total = (tensor.memoryview() for tensor in (exact.source, out))
    ways = {
        "exact": exact.sum,
        "library": library.sum,
        MPIS_OWN: lambda: MPI.COMM_WORLD.Allreduce((rows, MPI.FLOAT), (total, MPI.FLOAT)),
    }
    exact.source.copy_(engine.rand(1, length))
    library.source.copy_(exact.source)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM + rounds):
        for name, run in ways.items():
            took = seconds(run)
            if number >= WARM:
                times[name].append(took)
    assert engine.allclose(exact.out, out)
    ms = {name: statistics.median(some) * 1e3 for name, some in times.items()}
    ratios = {
        name: statistics.median(map(operator.truediv, some, times[MPIS_OWN]))
        for name, some in times.items()
        if name != MPIS_OWN
    }
    return {"length": length, "ms": ms, "ratios": ratios}


def main() -> None:
    """Print a line of JSON on rank 0."""
    engine.set_num_threads(1)
    group = distributed.join()
    quick = "--quick" in sys.argv
    figures = [
        measured(length, 5 if quick else 401 if length < 1_000_000 else 41) for length in LENGTHS
    ]
    if group.rank == 0:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
