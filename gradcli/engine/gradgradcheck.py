"""Gradgradcheck: gradients of gradients against finite differences of gradients, in float64.

For fixed random weights w, and gradients v that come in at the outputs, the function
f(inputs, v) = sum(w * gradient of the inputs) is one number. Its gradient, by two backward passes,
must equal (f(x + h) - f(x - h)) / 2h. Each f there takes one plain backward pass through the fused
kernels. Where an op can be differentiated twice only under decomposed(), that form is checked.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from gradcli.engine import autograd
from gradcli.engine.fused import decomposed
from gradcli.engine.gradcheck import (
    CheckReport,
    Failure,
    Row,
    Slopes,
    behind,
    call,
    chosen_ops,
    input_names,
    position,
    report_on,
)
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor

MOST = 24  # elements tried of each tensor: two backward passes for each of them


class _SecondOrderCase(Slopes):
    """The sum of all gradients times their weights, from inputs and incoming gradients."""

    def __init__(self, op: Row, sample: Sample) -> None:
        super().__init__(op, sample)
        self.rng = random.Random(f"twice {op.name}{sample}")
        self.floats = [x for x in self.inputs if x is not None and x.is_floating_point()]
        for x in self.floats:
            x.requires_grad_()
        self.arriving = [self._normal(y).requires_grad_() for y in self._outputs()]
        self.weights = [self._normal(x) for x in self.floats]

    def _normal(self, like: Tensor) -> Tensor:
        numbers = [self.rng.gauss(0, 1) for _ in range(like.numel())]
        return tensor(numbers, dtype=like.dtype).reshape(like.shape)

    def _outputs(self) -> list[Tensor]:
        return [y for y in call(self.op, self.sample, self.inputs) if y.requires_grad]

    def gradients(self, create_graph: bool) -> Sequence[Tensor | None]:
        """Of the float inputs, by one backward pass."""
        outputs = self._outputs()
        if not outputs or not self.floats:
            return [None] * len(self.floats)
        return autograd.grad(
            outputs, self.floats, self.arriving, create_graph=create_graph, allow_unused=True
        )

    def total(self, gradients: Sequence[Tensor | None]) -> Tensor | None:
        """The sum of all gradients times their weights."""
        total: Tensor | None = None
        for grad, weight in zip(gradients, self.weights, strict=True):
            if grad is not None:
                part = (grad * weight).sum()
                total = part if total is None else total + part
        return total

    def value(self) -> float:
        """The value by a plain backward pass."""
        total = self.total(self.gradients(create_graph=False))
        return 0.0 if total is None else float(total.item())

    def analytic(self) -> list[Tensor | None]:
        """By a second backward pass, for each float input and each gradient that comes in."""
        variables = [*self.floats, *self.arriving]
        total = self.total(self.gradients(create_graph=True))
        if total is None or not total.requires_grad:
            return [None] * len(variables)
        return list(autograd.grad(total, variables, allow_unused=True))


def has_double_backward(op: Row, sample: Sample) -> bool:
    """Whether its gradient can be differentiated without decomposing its ops."""
    return all(step.double_backward_rule for step in behind(op, sample))


def _float_names(case: _SecondOrderCase) -> list[str]:
    pairs = zip(input_names(case.op, case.sample), case.inputs, strict=True)
    return [name for name, x in pairs if x is not None and x.is_floating_point()]


def check(op: Row, sample: Sample) -> list[Failure]:
    """The worst element of each input, and of each gradient that comes in, whose slopes differ."""
    with decomposed(not has_double_backward(op, sample)):
        return [*same_values(op, sample), *_slopes(op, sample)]


def _slopes(op: Row, sample: Sample) -> list[Failure]:
    case = _SecondOrderCase(op, sample)
    names = [*_float_names(case), *(f"gradient {i}" for i in range(len(case.arriving)))]
    variables = [*case.floats, *case.arriving]
    rows = zip(names, variables, case.analytic(), strict=True)
    failures = [
        case.failure(name, x, grad, case.rng.sample(range(x.numel()), min(MOST, x.numel())))
        for name, x, grad in rows
    ]
    return [f for f in failures if f is not None]


def same_values(op: Row, sample: Sample) -> list[Failure]:
    """Where the gradients by ops are not those by the fused kernels, up to rounding."""
    case = _SecondOrderCase(op, sample)
    plain, by_ops = case.gradients(create_graph=False), case.gradients(create_graph=True)
    failures = []
    for name, a, b in zip(_float_names(case), plain, by_ops, strict=True):
        if (a is None) != (b is None):
            failures.append(Failure(op.name, str(sample), name, (), math.nan, math.nan))
        elif a is not None and b is not None:
            pairs = zip(b.reshape(-1).tolist(), a.reshape(-1).tolist(), strict=True)
            failures += [
                Failure(op.name, str(sample), name, position(i, a.shape), x, y)
                for i, (x, y) in enumerate(pairs)
                if not (abs(x - y) <= 1e-11 + 1e-10 * abs(y) or (x != x and y != y))
            ][:1]
    return failures


def check_all(names: Sequence[str] | None = None) -> CheckReport[Failure]:
    """Check the named ops, or all that have a gradient; none of these is skipped."""
    return report_on((op for op in chosen_ops(names) if op.differentiable), check)
