"""The kernels behind the ceilings do what they say, and the ceilings are used by size."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.bench.ceilings import LEVELS, Ceilings, Meter
from gradcli.engine.array import empty, run
from gradcli.engine.dtype import DType
from gradcli.errors import ShapeError

TWO_LEVELS = Ceilings(gflops=100.0, copies=((1000, 50.0), (1_000_000, 10.0)), threads=1)


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
@pytest.mark.parametrize("multiply_adds", [0, 191, 192, 96_000])
def test_multiply_adds_reach_their_fixed_point(isa: str, dtype: DType, multiply_adds: int) -> None:
    """s = s * 0.5 + 0.5, begun at 0, 0.5 ... 5.5, so that the mean of the beginnings is 2.75."""
    x, y = engine.tensor([0.5, 0.5], dtype=dtype).array, empty((5,), dtype)
    run("fma_rate", x, y, sizes=(multiply_adds,))
    found = y.tolist()
    assert len(set(found)) == 1
    if multiply_adds == 0:
        assert found[0] == 2.75
    elif multiply_adds == 96_000:
        assert found[0] == 1.0
    else:
        assert 1.0 < found[0] <= 2.75


VECTOR_BYTES = {"baseline": 16, "neon": 16, "avx2": 32, "avx512": 64}
CHAINS = 12


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
@pytest.mark.parametrize("multiply_adds", [0, 1, 191, 192, 193, 9_600])
def test_no_fewer_multiply_adds_are_made_than_are_counted(
    isa: str, dtype: DType, multiply_adds: int
) -> None:
    """s = s * 1 + 1 counts the rounds; a round is a multiply-add of every lane of every chain."""
    x, y = engine.ones(2, dtype=dtype).array, empty((5,), dtype)
    run("fma_rate", x, y, sizes=(multiply_adds,))
    at_once = CHAINS * VECTOR_BYTES[isa] // dtype.size
    beginning = (CHAINS - 1) / 2
    assert y.tolist() == [beginning + multiply_adds // at_once] * 5


def test_a_copy_copies_every_row() -> None:
    x = engine.arange(12, dtype=engine.float32).reshape(3, 4)
    y = empty((3, 4), engine.float32)
    run("copy_rate", x.array, y, sizes=(7,))
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize(("kernel", "rounds"), [("fma_rate", -1), ("copy_rate", 0)])
def test_impossible_rounds_are_refused(kernel: str, rounds: int) -> None:
    x = engine.zeros(2) if kernel == "fma_rate" else engine.zeros(2, 2)
    with pytest.raises(ShapeError, match=kernel):
        run(kernel, x.array, empty(x.shape, engine.float32), sizes=(rounds,))


def test_a_measurement_has_every_level_and_is_positive() -> None:
    meter = Meter()
    meter.run(seconds=0.0)
    found = meter.ceilings()
    assert found.gflops > 0
    assert [size for size, _ in found.copies] == list(LEVELS)
    assert all(rate > 0 for _, rate in found.copies)


def test_going_on_never_lowers_a_ceiling() -> None:
    meter = Meter()
    meter.run(seconds=0.0)
    before = meter.ceilings()
    meter.run(seconds=0.0)
    after = meter.ceilings()
    assert after.gflops >= before.gflops
    assert all(a[1] >= b[1] for a, b in zip(after.copies, before.copies, strict=True))


@pytest.mark.parametrize(
    ("nbytes", "gbs"), [(0, 50.0), (1000, 50.0), (1001, 10.0), (1_000_000_000, 10.0)]
)
def test_the_smallest_level_that_holds_a_call_counts(nbytes: int, gbs: float) -> None:
    assert TWO_LEVELS.gbs(nbytes) == gbs


def test_the_slower_side_is_the_bound() -> None:
    assert TWO_LEVELS.least_seconds(100e9, 500) == (1.0, "compute")
    assert TWO_LEVELS.least_seconds(1.0, 1e10) == (1.0, "memory")
    assert TWO_LEVELS.least_seconds(0, 0)[0] == 0
