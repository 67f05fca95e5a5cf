"""Devicecheck: every op on another device in float32, against the CPU in float64; and in bfloat16.

Values and, where there are any, the gradients of all inputs, on every sample that the op declares.
Numbers drawn are the same on every device, so what draws is compared too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from gradcli.dataclass import dataclass
from gradcli.engine import dtype as dtypes
from gradcli.engine import graph
from gradcli.engine.device.gpu import opened
from gradcli.engine.dtype import DType
from gradcli.engine.gradcheck import CheckReport, Row, call, chosen_ops, make_inputs, report_on
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.sample import Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError

# A few hundred roundings of 6e-8, the most that these small samples collect, as in the tests of
# float32 on the CPU; what cancels is small beside the largest number of its tensor.
RELATIVE = 2e-5
# In bfloat16 both devices round sums of float32, now and then to one side and to the other.
RELATIVE_HALF = 2.0**-7
UNDEFINED = {"empty_like", "new_empty"}  # memory as it comes; that they run is all there is


@dataclass(frozen=True)
class Difference:
    """Where a device and the CPU differ."""

    op: str
    sample: str
    what: str

    def __str__(self) -> str:
        return f"{self.op}{self.sample}: {self.what}"


def check_all(device: str, names: Sequence[str] | None = None) -> CheckReport[Difference]:
    """Compare the named ops, or all. A device that cannot be used is an error."""
    opened.device(device)
    return report_on(chosen_ops(names), partial(check, device=device))


def check(op: Row, sample: Sample, device: str) -> list[Difference]:
    """Where results or gradients differ, or only one of the two refuses the call."""
    half = _check_half(op, sample, device) if sample is op.samples[0] else []
    return _check_single(op, sample, device) + half


def _check_half(op: Row, sample: Sample, device: str) -> list[Difference]:
    """The same in bfloat16 on both, where the op takes that."""
    if all(x is None or x.dtype is not dtypes.bfloat16 for x in _halves(sample)):
        return []
    try:
        on_cpu = list(_values(op, sample, "cpu", dtypes.bfloat16))
    except GradcliError:
        return []
    try:
        on_device = list(_values(op, sample, device, dtypes.bfloat16))
    except GradcliError as error:
        return [Difference(op.name, str(sample), f"in bfloat16 {device} says: {error.message}")]
    return [
        Difference(op.name, str(sample), f"in bfloat16, {name}: {reason}")
        for (name, x), (_, y) in zip(on_device, on_cpu, strict=True)
        if (reason := _differs(x, y, RELATIVE_HALF)) and op.name not in UNDEFINED
    ]


def _halves(sample: Sample) -> list[Tensor | None]:
    return make_inputs(sample, dtype=dtypes.bfloat16)


def _check_single(op: Row, sample: Sample, device: str) -> list[Difference]:
    try:
        on_cpu = list(_values(op, sample, "cpu", dtypes.float64))
        single = list(_values(op, sample, "cpu", dtypes.float32))
    except GradcliError as error:
        return [Difference(op.name, str(sample), f"the CPU says: {error.message}")]
    try:
        on_device = list(_values(op, sample, device, dtypes.float32))
    except GradcliError as error:
        return [Difference(op.name, str(sample), f"{device} says: {error.message}")]
    failed = []
    for (name, x), (_, y), (_, z) in zip(on_device, on_cpu, single, strict=True):
        # Where the type itself decides (what is drawn, a default eps), float32 is compared.
        reason = _differs(x, z if _differs(z, y) else y)
        if reason and op.name not in UNDEFINED:
            failed.append(Difference(op.name, str(sample), f"{name}: {reason}"))
    return failed


def _values(
    op: Row, sample: Sample, device: str, dtype: DType
) -> Iterator[tuple[str, Tensor | None]]:
    """Results and gradients, on the CPU."""
    inputs = [None if x is None else x.to(device) for x in make_inputs(sample, dtype=dtype)]
    if op.differentiable:
        for x in inputs:
            if x is not None and x.is_floating_point():
                x.requires_grad_()
    outputs = call(op, sample, inputs)
    for i, y in enumerate(outputs):
        yield f"result {i}", y.detach().cpu()
        if y.requires_grad:
            start = tensor([math.sin(k) for k in range(y.numel())], dtype=dtype)
            y.backward(start.reshape(y.shape).to(device), retain_graph=True)
    for i, x in enumerate(inputs):
        grad = None if x is None or not x.is_floating_point() else x.grad
        yield f"gradient of input {i}", None if grad is None else grad.cpu()


def _differs(x: Tensor | None, y: Tensor | None, relative: float = RELATIVE) -> str:
    """How the first differs from the second; empty where it does not."""
    if x is None or y is None:
        return "" if x is y else f"only {'the CPU' if x is None else 'the device'} has one"
    if x.shape != y.shape:
        return f"shape {x.shape} instead of {y.shape}"
    with graph.no_grad():
        left, right = x.double().reshape(-1).tolist(), y.double().reshape(-1).tolist()
    finite = [abs(v) for v in right if math.isfinite(v)]
    most = relative * max(1.0, max(finite, default=0.0))
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        same = a == b or (a != a and b != b) or abs(a - b) <= most
        if not same:
            return f"element {i} is {a:.9g} instead of {b:.9g}"
    return ""
