"""Gradcheck: every declared gradient against finite differences, in float64 on the CPU.

For fixed random weights w the function f = sum(w * output) is one number; its gradient by backward
must equal (f(x + h) - f(x - h)) / 2h for every element of every input. Finite differences in
float32 would only prove luck.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Generic, TypeVar

from gradcli.dataclass import dataclass
from gradcli.engine import dtype as dtypes
from gradcli.engine import graph
from gradcli.engine import shape as shapes
from gradcli.engine.composite import Composite, declared_functions
from gradcli.engine.op import Op, declared_ops
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.random import default_generator
from gradcli.engine.sample import Input, Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import AutogradError

Row = Op[Any] | Composite
Finding = TypeVar("Finding")  # what a check says of a mistake
# Of inputs whose numbers are indices, signs or truths.
OWN_TYPES = {"index": dtypes.int64, "sign": dtypes.int64, "bool": dtypes.bool_}
STEP = 1e-6  # of float64: the error of the difference is about 1e-10
ABSOLUTE, RELATIVE = 1e-6, 1e-5


@dataclass(frozen=True)
class Failure:
    """One element of one input whose two gradients differ."""

    op: str
    sample: str
    input: str
    element: tuple[int, ...]
    analytic: float
    numeric: float

    def __str__(self) -> str:
        return (
            f"{self.op}{self.sample}: the gradient of {self.input}{list(self.element)} is "
            f"{self.analytic:.9g} by backward and {self.numeric:.9g} by finite differences"
        )


@dataclass
class CheckReport(Generic[Finding]):
    """What was checked, and what failed."""

    ops: int = 0
    cases: int = 0
    failed: list[Finding] = field(default_factory=list)


def report_on(
    ops: Iterable[Row], check: Callable[[Row, Sample], list[Finding]]
) -> CheckReport[Finding]:
    """Check every sample of these ops; none is skipped."""
    report = CheckReport[Finding]()
    for op in ops:
        assert op.samples, f"{op.name} declares no samples"
        report.ops += 1
        for sample in op.samples:
            report.cases += 1
            report.failed += check(op, sample)
    return report


def make_inputs(sample: Sample, *, dtype: dtypes.DType = dtypes.float64) -> list[Tensor | None]:
    """The inputs a sample describes; the same ones each time."""
    rng = random.Random(str(sample))
    return [make_input(spec, rng, dtype) for spec in sample.inputs]


def make_input(spec: Input, rng: random.Random, dtype: dtypes.DType) -> Tensor | None:
    """One input, filled from a random state."""
    if spec.kind == "none":
        return None
    return tensor(spec.numbers(rng), dtype=OWN_TYPES.get(spec.kind, dtype)).reshape(spec.shape)


def call(op: Row, sample: Sample, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """The op on these inputs, as a tuple of tensors; what is drawn, the next call draws again."""
    state = default_generator.get_state()
    try:
        result = op(*inputs, **sample.options)
    finally:
        default_generator.set_state(*state)
    several = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(y for y in several if isinstance(y, Tensor))


def input_names(op: Row, sample: Sample) -> Sequence[str]:
    """What to call the inputs of a sample."""
    if isinstance(op, Op):
        return op.inputs
    return [f"input {i}" for i in range(len(sample.inputs))]


def behind(op: Row, sample: Sample, *, dtype: dtypes.DType = dtypes.float64) -> list[Op[Any]]:
    """The declared ops that gradients of this call go through, in the order of their calls."""
    if isinstance(op, Op):
        return [op]
    inputs = make_inputs(sample, dtype=dtype)
    for x in inputs:
        if x is not None and x.is_floating_point():
            x.requires_grad_()
    nodes: dict[int, graph.Node] = {}
    waiting = [y.node for y in call(op, sample, inputs) if y.node is not None]
    while waiting:
        node = waiting.pop()
        if node.number not in nodes:
            nodes[node.number] = node
            waiting += [
                edge[0] for edge in node.parents if edge and isinstance(edge[0], graph.Node)
            ]
    rules = {nodes[number].rule: None for number in sorted(nodes)}
    return [rule for rule in rules if isinstance(rule, Op)]


class Slopes:
    """One sample of one op as a function to one number, whose slopes are held against gradients."""

    def __init__(self, op: Row, sample: Sample) -> None:
        self.op = op
        self.sample = sample
        self.inputs = make_inputs(sample)

    def value(self) -> float:
        """The number."""
        raise NotImplementedError

    def numeric(self, x: Tensor, i: int) -> float:
        """The slope along element `i` of one tensor."""
        numbers: Any = x.array.memoryview().cast("d")
        before = numbers[i]
        numbers[i] = before + STEP
        above = self.value()
        numbers[i] = before - STEP
        below = self.value()
        numbers[i] = before
        return (above - below) / (2 * STEP)

    def failure(
        self, name: str, x: Tensor, grad: Tensor | None, elements: Iterable[int]
    ) -> Failure | None:
        """The worst of these elements, where the gradient is not the slope."""
        # An input no gradient reached is claimed constant: its slope must be 0.
        claimed = [0.0] * x.numel() if grad is None else grad.reshape(-1).tolist()
        worst: tuple[float, Failure] | None = None
        for i in elements:
            numeric = self.numeric(x, i)
            error = abs(claimed[i] - numeric)
            within = error <= ABSOLUTE + RELATIVE * abs(numeric)
            if not within and (worst is None or not error <= worst[0]):
                at = position(i, x.shape)
                failure = Failure(self.op.name, str(self.sample), name, at, claimed[i], numeric)
                worst = (error, failure)
        return None if worst is None else worst[1]


class _Case(Slopes):
    """The sum of all outputs, each times a weight."""

    def __init__(self, op: Row, sample: Sample) -> None:
        super().__init__(op, sample)
        rng = random.Random(f"weights of {op.name}{sample}")
        with graph.no_grad():
            outputs = call(op, sample, self.inputs)
        self.weights = [[rng.gauss(0, 1) for _ in range(y.numel())] for y in outputs]

    def value(self) -> float:
        """sum(weights * outputs), over the float outputs."""
        with graph.no_grad():
            outputs = call(self.op, self.sample, self.inputs)
        terms = []
        for weights, y in zip(self.weights, outputs, strict=True):
            if y.is_floating_point():
                numbers = y.double().reshape(-1).tolist()
                terms += [w * v for w, v in zip(weights, numbers, strict=True)]
        return math.fsum(terms)

    def analytic(self) -> list[Tensor | None]:
        """Gradients by backward, one an input; None where there is none."""
        for x in self.inputs:
            if x is not None and x.is_floating_point():
                x.requires_grad_()
        outputs = call(self.op, self.sample, self.inputs)
        for weights, y in zip(self.weights, outputs, strict=True):
            if y.requires_grad:
                start = tensor(weights, dtype=y.dtype).reshape(y.shape)
                y.backward(start, retain_graph=True)
        grads = [None if x is None else x.grad for x in self.inputs]
        for x in self.inputs:
            if x is not None:
                x.requires_grad_(False)
        return grads


def position(i: int, shape: shapes.Shape) -> tuple[int, ...]:
    """Element number `i` in row-major order, as an index."""
    index: list[int] = []
    for size in reversed(shape):
        index.append(i % size)
        i //= size
    return tuple(reversed(index))


def check(op: Row, sample: Sample) -> list[Failure]:
    """The worst element of each input whose gradients differ."""
    case = _Case(op, sample)
    rows = zip(input_names(op, sample), case.inputs, case.analytic(), strict=True)
    failures = [
        case.failure(name, x, grad, range(x.numel()))
        for name, x, grad in rows
        if x is not None and x.is_floating_point()
    ]
    return [failure for failure in failures if failure]


def check_without_gradient(op: Row, sample: Sample) -> list[Failure]:
    """An op declared without gradient must say why, and must not pretend to have one."""
    assert op.why, f"{op.name} has neither a gradient nor a reason"
    inputs = make_inputs(sample)
    for x in inputs:
        if x is not None and x.is_floating_point():
            x.requires_grad_()
    try:
        pretends = any(y.requires_grad for y in call(op, sample, inputs))
    except AutogradError:  # it writes in place, and refuses to lose a gradient
        return []
    return [Failure(op.name, str(sample), "input 0", (), math.nan, 0.0)] if pretends else []


def check_declaration(op: Row, sample: Sample) -> list[Failure]:
    """The one of both that the op asks for."""
    return (check if op.differentiable else check_without_gradient)(op, sample)


def check_all(names: Sequence[str] | None = None) -> CheckReport[Failure]:
    """Check the named ops, or all that are declared."""
    return report_on(chosen_ops(names), check_declaration)


def every_op() -> list[Row]:
    """All declared ops, and all functions composed of them, by name."""
    return sorted([*declared_ops(), *declared_functions()], key=lambda op: op.name)


def chosen_ops(names: Sequence[str] | None) -> list[Row]:
    """The named ops, or all."""
    return [op for op in every_op() if names is None or op.name in names]
