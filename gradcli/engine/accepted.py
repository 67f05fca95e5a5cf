"""Which element types an op takes: found by calling it on its first sample with each of them."""

from __future__ import annotations

from typing import Any

from gradcli.engine import graph
from gradcli.engine.composite import Composite
from gradcli.engine.dtype import DTYPES, DType
from gradcli.engine.gradcheck import OWN_TYPES
from gradcli.engine.op import Op
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.sample import Input, Sample
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError


def accepted(op: Op[Any] | Composite) -> tuple[str, ...]:
    """The names of these types, in the order of `DTYPES`; none where no input leaves a choice."""
    first = op.samples[0]
    if all(spec.kind == "none" for spec in first.inputs):
        return ()
    fixed = fixed_types(first)
    return tuple(name for name, dtype in DTYPES.items() if _accepts(op, dtype, fixed))


def fixed_types(sample: Sample) -> dict[str, DType]:
    """The types of indices and conditions: their own, unless there is nothing else."""
    return OWN_TYPES if {spec.kind for spec in sample.inputs} - {"none", *OWN_TYPES} else {}


def format_types(names: tuple[str, ...]) -> str:
    """The types in a word where there is one (floats, numbers, whole, all), else their names."""
    kinds = {
        kind: {name for name, dtype in DTYPES.items() if dtype.kind == kind}
        for kind in ("float", "int", "bool")
    }
    words = {
        frozenset(): "-",
        frozenset(kinds["float"]): "floats",
        frozenset(kinds["float"] | kinds["int"]): "numbers",
        frozenset(kinds["int"] | kinds["bool"]): "whole, bool",
        frozenset(DTYPES): "all",
    }
    return words.get(frozenset(names), ", ".join(names))


def _accepts(op: Op[Any] | Composite, dtype: DType, fixed: dict[str, DType]) -> bool:
    sample = op.samples[0]
    try:
        with graph.no_grad():
            op(
                *(_ones_like(spec, fixed.get(spec.kind, dtype)) for spec in sample.inputs),
                **sample.options,
            )
    except GradcliError:
        return False
    return True


def _ones_like(spec: Input, dtype: DType) -> Tensor | None:
    """An input of ones: every type has them, and every op can divide by them."""
    if spec.kind == "none":
        return None
    number = 0 if spec.kind == "index" else 1
    return tensor(number, dtype=dtype).expand(spec.shape).clone()
