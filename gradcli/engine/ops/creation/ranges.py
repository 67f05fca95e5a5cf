"""Numbers in even steps, and on a grid of powers."""

from __future__ import annotations

from math import ceil, isfinite

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.argument import check_arguments
from gradcli.engine.array import Array, run
from gradcli.engine.array import empty as empty_array
from gradcli.engine.composite import function
from gradcli.engine.device.context import chosen_by_device
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Whole
from gradcli.engine.ops.creation.creation import FROM_NUMBERS
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


@check_arguments
@chosen_by_device
def linspace(
    start: float, end: float, steps: Whole, *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """`steps` numbers from start to end, both included, evenly spaced."""
    del device
    gap = (end - start) / (steps - 1) if steps > 1 else 0.0
    # From both ends towards the middle, as torch does, so that the last number is `end` itself.
    half = ceil(steps / 2)
    element_type = dtype or dtypes.float32
    parts = [_evenly(start, gap, half), _evenly(end, -gap, steps - half)]
    front, back = (
        Tensor(part if part.dtype is element_type else part.cast(element_type)) for part in parts
    )
    return table.cat([front, table.flip(back, 0)])


def _evenly(start: float, gap: float, count: int) -> Array:
    """start, start + gap, start + 2 gap, ... in double."""
    out = empty_array((count,), dtypes.float64)
    run("arange", out, options=(start, gap))
    return out


@function(
    method=False,
    samples=[
        sample(end=7),
        sample(start=2, end=12, step=3),
        sample(start=1.0, end=-1.0, step=-0.3),
        sample(start=2, end=3, dtype=dtypes.float64),
        sample(start=4, end=4),
    ],
    wrong=[
        wrong(sample(end=float("inf")), "needs finite numbers, got 0, inf, 1"),
        wrong(sample(end=3, step=0), "a step of 0 does not lead from 0 to 3"),
    ],
    why=FROM_NUMBERS,
)
@chosen_by_device
def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers: start, start + step, ... below end; with one argument from 0."""
    del device
    if end is None:
        start, end = 0, start
    if not all(isfinite(number) for number in (start, end, step)):
        raise OptionError(f"arange: needs finite numbers, got {start}, {end}, {step}")
    if step == 0 or (end - start) * step < 0:
        raise OptionError(f"arange: a step of {step} does not lead from {start} to {end}")
    whole = all(isinstance(number, int) for number in (start, end, step))
    made_as = dtypes.int64 if whole else dtypes.float64
    count = -((start - end) // step) if whole else ceil((end - start) / step)
    out = empty_array((int(count),), made_as)
    if whole:
        run("arange", out, sizes=(int(start), int(step)))
    else:
        run("arange", out, options=(start, step))
    element_type = dtype or (dtypes.int64 if whole else dtypes.float32)
    return Tensor(
        out if element_type is made_as else out.cast(element_type), requires_grad=requires_grad
    )


@function(
    method=False,
    samples=[
        sample(start=0, end=2, steps=5),
        sample(start=-1.0, end=1.0, steps=4, base=2.0, dtype=dtypes.float64),
        sample(start=3, end=9, steps=1),
        sample(start=0, end=1, steps=0),
    ],
    why=FROM_NUMBERS,
)
@chosen_by_device
def logspace(
    start: float,
    end: float,
    steps: Whole,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """`base` to the power of evenly spaced numbers from start to end, both included."""
    del device
    powers = linspace(start, end, steps, dtype=dtypes.float64)
    return (base**powers).to(dtype or dtypes.float32)
