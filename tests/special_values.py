"""Special values in the inputs of declared samples: infinities, NaN, zeros, subnormals, large ones.

Each is tried alone in the first float input, alone in the second, in all elements of all inputs,
and beside others: every float input runs through `mixed`, each faster than the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.dtype import DType
from gradcli.engine.gradcheck import Row
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor

MOST = 200  # elements of an input
SMALLEST = {engine.float32: 2.0**-126, engine.float64: 2.0**-1022}  # normal numbers
SUBNORMAL = {engine.float32: 1e-40, engine.float64: 5e-324}


def special(dtype: DType) -> dict[str, tuple[float, ...]]:
    """Values that are apt to go wrong, by kind."""
    return {
        "infinity": (math.inf, -math.inf),
        "NaN": (math.nan,),
        "zero": (0.0, -0.0),
        "subnormal": (SUBNORMAL[dtype], -SUBNORMAL[dtype]),
        "smallest": (SMALLEST[dtype],),
        "small": (1e-8,),
        "17": (17.0, -17.0),
        "1e4": (1e4, -1e4),
        "1e30": (1e30, -1e30),
    }


def mixed(dtype: DType) -> list[float]:
    """What stands side by side: nothing whose square overflows in one order and not in another."""
    tried = special(dtype)
    return [value for kind in tried if kind != "1e30" for value in tried[kind]]


Filling = Callable[[int, int, int, float], float]


def fillings(dtype: DType, inputs: int) -> Iterator[tuple[str, Filling]]:
    """Kinds of values, and functions from (float input, element, elements, number) to a number."""
    for kind, values in special(dtype).items():
        for value in values:
            for place in range(min(inputs, 2)):
                yield kind, partial(_alone, place, value)
            yield kind, partial(_everywhere, value)
    row = mixed(dtype)
    for first in range(len(row)):
        yield "mixed", partial(_in_turn, row, first)


def _alone(place: int, value: float, i: int, j: int, n: int, x: float) -> float:
    return value if i == place and j == n // 2 else x


def _everywhere(value: float, i: int, j: int, n: int, x: float) -> float:
    return value


def _in_turn(row: list[float], first: int, i: int, j: int, n: int, x: float) -> float:
    return row[(j * (i + 1) + first) % len(row)]


@dataclass
class Case:
    """A declared sample with special values in it."""

    op: Row
    sample: Sample
    kind: str
    inputs: list[Tensor | None]

    @property
    def floats(self) -> list[int]:
        """Which inputs are floats."""
        return [i for i, x in enumerate(self.inputs) if x is not None and x.is_floating_point()]


def samples(op: Row, most: int) -> list[Sample]:
    """The first of its samples that have floats to fill, and few."""
    sizes = [[math.prod(one.shape) for one in sample.inputs] for sample in op.samples]
    fitting = [
        s for s, n in zip(op.samples, sizes, strict=True) if n and min(n) >= 1 and max(n) <= MOST
    ]
    return fitting[:most]


def cases(op: Row, dtype: DType, most: int = 2) -> Iterator[Case]:
    """Its samples with every kind of special value in them."""
    for sample in samples(op, most):
        plain = Case(op, sample, "", gradcheck.make_inputs(sample, dtype=dtype))
        numbers = {i: _numbers(plain.inputs[i]) for i in plain.floats}
        for kind, fill in fillings(dtype, len(numbers)) if numbers else ():
            inputs = list(plain.inputs)
            for nth, (i, old) in enumerate(numbers.items()):
                new = [fill(nth, j, len(old), x) for j, x in enumerate(old)]
                x = plain.inputs[i]
                assert x is not None
                inputs[i] = engine.tensor(new, dtype=dtype).reshape(x.shape)
            yield Case(op, sample, kind, inputs)


def _numbers(x: Tensor | None) -> list[float]:
    assert x is not None
    numbers: list[float] = x.reshape(-1).tolist()
    return numbers


def start(count: int) -> list[float]:
    """The gradient with which a way back begins, exact in every type."""
    return [0.25 + i * 5 % 7 / 16 for i in range(count)]
