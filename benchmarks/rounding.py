"""The worst rounding of each op: its float32 results against those of its float64 build.

`python -m benchmarks.rounding` prints JSON. Both builds get the same numbers, rounded to float32
before; the float64 build is held to references in plain Python by tests/test_ops.py.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.random import default_generator
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor

# Of which the default depends on the element type: both builds get that of float32.
DEFAULTS = {"rms_norm": {"eps": 2.0**-23}}
DRAWS = 20  # of the inputs of each declared sample
DIGITS, LEAST = 24, -149  # of a float32: bits of its mantissa, and the exponent of the smallest


@dataclass
class Rounding:
    """What one op was found to lose, in units in the last place (ulp) of float32.

    Attributes:
        elements: how many results were compared.
        each: the largest error, in ulp of that very result; results of 0 have no such scale.
        largest: the largest error, in ulp of the largest result of its call, or of 1 where that is
            larger: where terms cancel, as in a sum, a small result bears the rounding of its terms.
        backward: as `largest`, of the gradients.
    """

    elements: int = 0
    each: float = 0.0
    largest: float = 0.0
    backward: float | None = None
    differs: list[str] = field(default_factory=list)


def ulp(x: float) -> float:
    """The gap between neighbours among float32 numbers at x."""
    return math.ldexp(1.0, max(math.frexp(x)[1] - DIGITS, LEAST) if x else LEAST)


def of_op(op: Row, draws: int = DRAWS) -> Rounding | None:
    """The worst over its samples; None where nothing of it is a number with a fraction."""
    rounding = Rounding()
    defaults = DEFAULTS.get(op.name, {})
    for sample in (replace(case, options={**defaults, **case.options}) for case in op.samples):
        for turn in range(draws):
            _compare(op, sample, random.Random(f"{sample} {turn}"), rounding)
    return rounding if rounding.elements else None


def _compare(op: Row, sample: Sample, rng: random.Random, rounding: Rounding) -> None:
    inputs = [gradcheck.make_input(source, rng, engine.float32) for source in sample.inputs]
    single, single_grads = _results(op, sample, inputs)
    wide = [x.to(engine.float64) if x is not None and x.is_floating_point() else x for x in inputs]
    double, double_grads = _results(op, sample, wide)
    for few, many in zip(single, double, strict=True):
        if few.dtype is engine.float32 and many.dtype is engine.float64:
            each, largest, count = _errors(few, many)
            rounding.elements += count
            rounding.each = max(rounding.each, each)
            rounding.largest = max(rounding.largest, largest)
            if math.isinf(each):
                rounding.differs.append(str(sample))
    for few, many in zip(single_grads, double_grads, strict=True):
        rounding.backward = max(rounding.backward or 0.0, _errors(few, many)[1])


def _results(
    op: Row, sample: Sample, inputs: list[Tensor | None]
) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs of an op and, where it has them, the gradients of sum(output * sin(number))."""
    leaves = [None if x is None else x.detach().clone() for x in inputs]
    for x in leaves:
        if x is not None and x.is_floating_point() and op.differentiable:
            x.requires_grad_()
    outputs = gradcheck.call(op, sample, leaves)
    for y in outputs:
        if y.requires_grad:
            start = engine.tensor([math.sin(i) for i in range(y.numel())], dtype=engine.float32)
            y.backward(start.to(y.dtype).reshape(y.shape), retain_graph=True)
    gradients = [x.grad for x in leaves if x is not None and x.grad is not None]
    return [y.detach() for y in outputs], gradients


def _errors(single: Tensor, double: Tensor) -> tuple[float, float, int]:
    """The largest errors in ulp of the element and of the largest one, and how many elements.

    Infinity where one of the two is no finite number and the other is something else.
    """
    pairs = list(zip(single.reshape(-1).tolist(), double.reshape(-1).tolist(), strict=True))
    finite = [(a, b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
    odd = [(a, b) for a, b in pairs if not (math.isfinite(a) and math.isfinite(b))]
    if any(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in odd):
        return math.inf, math.inf, len(pairs)
    gap = ulp(max(1.0, *(abs(b) for _, b in finite)) if finite else 1.0)
    each = max((abs(a - b) / ulp(b) for a, b in finite if b), default=0.0)
    return each, max((abs(a - b) / gap for a, b in finite), default=0.0), len(pairs)


def all_ops(draws: int = DRAWS) -> Iterator[tuple[str, Rounding]]:
    """Each op with results to compare: none that draws numbers or leaves its memory unwritten."""
    for op in sorted(every_op(), key=lambda op: op.name):
        rounding = None if "empty" in op.name or _draws_numbers(op) else of_op(op, draws)
        if rounding is not None:
            yield op.name, rounding


def _draws_numbers(op: Row) -> bool:
    """Whether a call moves the random state on."""
    state = default_generator.get_state()
    try:
        for sample in op.samples:
            op(*gradcheck.make_inputs(sample), **sample.options)
        return default_generator.get_state() != state
    finally:
        default_generator.set_state(*state)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: asdict(worst) for name, worst in all_ops()}) + "\n")
