"""Matrix products in NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.runner import Loop, Runner


def matmul(m: int, k: int, n: int, mode: str) -> Runner:
    """One matrix product into memory that is there."""
    source = np.random.default_rng(0)
    a, b = source.random((m, k), np.float32), source.random((k, n), np.float32)
    out = np.empty((m, n), np.float32)
    return Loop(lambda a, b: np.matmul(a, b, out=out), [(a, b)], values=lambda result: [])


def versions() -> dict[str, str]:
    """What is compared here."""
    return {"numpy": np.__version__}
