"""Calls near the declared samples, where an op may have nothing to do and give its input.

Sizes become 1, and options what is likely to change nothing; in memory of several layouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from inspect import Parameter
from math import prod
from typing import Any

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import Row
from gradcli.engine.op import Op
from gradcli.engine.sample import Sample
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor


def variants(op: Row) -> list[Sample]:
    """The samples of an op, and calls near them that it may refuse."""
    every = [one for sample in op.samples for one in _near(op, sample)]
    return list({str(one): one for one in every}.values())


def _near(op: Row, sample: Sample) -> Iterator[Sample]:
    yield sample
    sizes = sorted({size for one in sample.inputs for size in one.shape if size > 1})
    for ones in [*({size} for size in sizes), set(sizes)]:
        yield replace(sample, inputs=tuple(_shrunk(one, ones) for one in sample.inputs))
    for name, value in {**_defaults(op), **sample.options}.items():
        for other in _idle(value):
            yield replace(sample, options={**sample.options, name: other})


def _shrunk(one: Any, ones: set[int]) -> Any:
    """An input whose sizes among these are 1."""
    return replace(one, shape=tuple(1 if size in ones else size for size in one.shape))


def _defaults(op: Row) -> dict[str, Any]:
    if isinstance(op, Op):
        return op.options
    return {s.name: s.default for s in op.slots if s.default is not Parameter.empty}


def _idle(value: Any) -> list[Any]:
    """Values of an option that often mean: nothing to do."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [other for other in (0, 1, -1) if other != value]
    if isinstance(value, tuple):
        return [(), *((number,) * len(value) for number in (0, 1))]
    return []


def transposed(x: Tensor) -> Tensor:
    """The same numbers, of which the first dimension lies closest in memory."""
    order = list(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def stepped(x: Tensor) -> Tensor:
    """The same numbers with gaps between them."""
    whole = engine.full([2 * size + 1 for size in x.shape], 1, dtype=x.dtype)
    return whole[tuple(slice(1, None, 2) for _ in x.shape)].copy_(x)


LAYOUTS = (lambda x: x, transposed, stepped)


def inputs_of(sample: Sample, dtype: Any, layout: Any) -> list[Tensor | None]:
    """The inputs of a sample, of this type and in this layout."""
    made = gradcheck.make_inputs(sample, dtype=dtype)
    return [None if x is None else layout(x) for x in made]


def places(offset: int, shape: Shape, strides: Shape) -> list[int]:
    """Where each element lies in its block of memory, in elements, in row-major order."""
    found = [offset] if prod(shape) else []
    for size, stride in zip(shape, strides, strict=True):
        found = [place + i * stride for place in found for i in range(size)]
    return found
