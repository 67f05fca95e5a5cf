"""The calls that ops make on their samples, forward and backward.

In float32, in the whole-number types where an op takes them, on strided tensors, and with sizes
beside the round ones.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.dtype import DType
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.kernelcheck.calls import CheckedCall, Collector
from gradcli.engine.sample import Input, Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError

TAILS = (1, 31, 33, 257, 1000)
LARGEST = 20_000  # elements of an input
PLAINEST = 2  # samples of a kernel that are tried in other sizes
_WHOLE = (engine.int64, engine.int32, engine.uint8, engine.bool_)
_OWN_TYPE = ("index", "bool", "none")  # kinds of input whose type no one chooses
Make = Callable[[Sample], list[Tensor | None]]


def transposed(x: Tensor) -> Tensor:
    """The same numbers with the dimensions in memory the other way round."""
    order = list(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def stepped(x: Tensor) -> Tensor:
    """The same numbers with an offset and gaps."""
    whole = engine.full([2 * size + 1 for size in x.shape], 7, dtype=x.dtype)
    inside = whole[tuple(slice(1, None, 2) for _ in x.shape)]
    return inside.copy_(x)


def whole_inputs(sample: Sample, dtype: DType) -> list[Tensor | None]:
    """Whole numbers near 0, which they are not: many ops divide."""
    rng = random.Random(str(sample))
    inputs: list[Tensor | None] = []
    for spec in sample.inputs:
        if spec.kind in _OWN_TYPE:
            inputs.append(gradcheck.make_input(spec, rng, dtype))
            continue
        numbers = [round(3 * x) or 1 for x in spec.numbers(rng)]
        if dtype in (engine.uint8, engine.bool_):
            numbers = [abs(x) for x in numbers]
        inputs.append(engine.tensor(numbers, dtype=dtype).reshape(spec.shape))
    return inputs


def resized(sample: Sample) -> Iterator[Sample]:
    """Samples in which one size, wherever it stands, is another: what lies behind round ones."""
    shapes = {spec.shape for spec in sample.inputs if spec.kind != "none"}
    if len(shapes) == 1:
        for tail in TAILS:
            yield replace(
                sample, inputs=tuple(replace(spec, shape=(tail,)) for spec in sample.inputs)
            )
    sizes = {size for spec in sample.inputs for size in spec.shape[-2:] if size > 1}
    for size in sorted(sizes):
        for tail in TAILS:
            inputs = tuple(_with(spec, size, tail) for spec in sample.inputs)
            if all(math.prod(spec.shape) <= LARGEST for spec in inputs):
                yield replace(sample, inputs=inputs)


def _with(spec: Input, size: int, tail: int) -> Input:
    return replace(spec, shape=tuple(tail if n == size else n for n in spec.shape))


def _try(op: Row, sample: Sample, inputs: list[Tensor | None]) -> None:
    """Forward and backward; what the op refuses is not asked of a kernel either."""
    try:
        for x in inputs:
            if x is not None and x.is_floating_point() and op.differentiable:
                x.requires_grad_()
        for y in gradcheck.call(op, sample, inputs):
            if y.requires_grad:
                start = engine.tensor([math.sin(i) for i in range(y.numel())], dtype=y.dtype)
                y.backward(start.reshape(y.shape), retain_graph=True)
    except (GradcliError, OverflowError):
        pass


def _float32(sample: Sample) -> list[Tensor | None]:
    return gradcheck.make_inputs(sample, dtype=engine.float32)


def _laid_out(layout: Callable[[Tensor], Tensor]) -> Make:
    return lambda sample: [None if x is None else layout(x) for x in _float32(sample)]


def _of_type(dtype: DType) -> Make:
    return lambda sample: whole_inputs(sample, dtype)


_VARIANTS: dict[str, Make] = {
    "": _float32,
    " transposed": _laid_out(transposed),
    " stepped": _laid_out(stepped),
    **{f" {dtype.name}": _of_type(dtype) for dtype in _WHOLE},
}


def _run(collector: Collector, op: Row, sample: Sample, variant: str = "") -> None:
    try:
        inputs = _VARIANTS[variant](sample)
    except GradcliError:  # no such numbers in this type
        return
    with collector.listening(f"{op.name}{sample}{variant}"):
        _try(op, sample, inputs)


def sampled_calls(
    wants: Callable[[str], bool] = lambda kernel: True,
) -> dict[str, list[CheckedCall]]:
    """The calls of the wanted kernels, by kernel."""
    collector = Collector(wants)
    for op, sample in _plainest(_on_samples(collector)):
        for variant in resized(sample):
            _run(collector, op, variant)
    return collector.calls


def plain_calls(wants: Callable[[str], bool] = lambda kernel: True) -> dict[str, list[CheckedCall]]:
    """The same on the samples alone, in no other sizes."""
    collector = Collector(wants)
    _on_samples(collector)
    return collector.calls


def _on_samples(collector: Collector) -> dict[str, list[tuple[int, int, Row, Sample]]]:
    """Run every op on its samples; for each kernel the samples that reach it, with their ranks."""
    reached: dict[str, list[tuple[int, int, Row, Sample]]] = {}
    for op in every_op():
        for sample in (*op.samples, *(wrong.sample for wrong in op.wrong)):
            for variant in _VARIANTS:
                _run(collector, op, sample, variant)
                for kernel in () if variant else collector.reached:
                    rank = len(collector.reached), len(reached.get(kernel, ()))
                    reached.setdefault(kernel, []).append((*rank, op, sample))
    return reached


def _plainest(reached: dict[str, list[tuple[int, int, Row, Sample]]]) -> list[tuple[Row, Sample]]:
    """For each kernel the samples that reach it with the fewest others around it."""
    plainest: dict[str, tuple[Row, Sample]] = {}
    for ways in reached.values():
        for _, _, op, sample in sorted(ways, key=lambda way: way[:2])[:PLAINEST]:
            plainest[f"{op.name}{sample}"] = op, sample
    return list(plainest.values())
