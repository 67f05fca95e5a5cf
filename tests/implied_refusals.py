"""Calls that an op must refuse: those written beside it, and those that its declaration implies.

Nobody writes beside an op that it refuses other element types, a `dim` outside of its input or one
named twice, numbers where it takes indices or truths, or an unknown reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradcli.engine.accepted import accepted, fixed_types
from gradcli.engine.dtype import DTYPES
from gradcli.engine.gradcheck import Row
from gradcli.engine.kind import Kind, Unfit
from gradcli.engine.op import Op
from gradcli.engine.sample import Sample, Wrong, wrong

DIMS = ("dim", "dim0", "dim1", "dim2", "dims", "axis0", "axis1", "dimension")
ADDS_DIM = {"stack", "unsqueeze", "diag_embed"}  # dim counts in a result with one more
OTHER_DIMS = {"tensordot", "rot90", "tile"}  # their `dims` are two, two lists, or no dimensions
REPEATS_DIM = {"roll"}  # the same dimension may be rolled twice


def kinds(row: Row) -> dict[str, Kind]:
    """What each argument beside an op's inputs may be."""
    return row.kinds if isinstance(row, Op) else row.arguments.kinds


def fits(kind: Kind, value: Any) -> bool:
    """Whether the declaration allows a value."""
    try:
        kind.convert(value)
    except Unfit:
        return False
    return True


def refusals(row: Row) -> list[Wrong]:
    """All of them."""
    return [*row.wrong, *_types(row), *_dims(row), *_reductions(row), *_numbers(row)]


def _types(row: Row) -> Iterator[Wrong]:
    """The types that docs/ops.md does not name; held to the engine by tests/test_docs.py."""
    dtypes, first = accepted(row), row.samples[0]
    fixed = fixed_types(first)
    inputs = tuple(
        one if one.kind == "none" or one.kind in fixed else replace(one, kind="positive")
        for one in first.inputs
    )
    for name in DTYPES if dtypes else ():
        if name not in dtypes:  # of truths it may say what they lack: a sign, a difference
            yield wrong(replace(first, inputs=inputs), "" if name == "bool" else name, name)


def _dims(row: Row) -> Iterator[Wrong]:
    """The first dimension past the last, and one that is named from both ends."""
    first = row.samples[0]
    for name, kind in kinds(row).items():
        if name not in DIMS or row.name in OTHER_DIMS or not first.inputs:
            continue
        n = len(first.inputs[0].shape)
        limit = n + (row.name in ADDS_DIM)
        outside = limit if fits(kind, limit) else (limit,)
        yield wrong(_with(first, name, outside), f"dim {limit} is outside {-limit}..{limit - 1}")
        if fits(kind, (0, -n)) and row.name not in REPEATS_DIM:
            yield wrong(_with(first, name, (0, -n)), f"{(0, -n)}")


def _reductions(row: Row) -> Iterator[Wrong]:
    if "reduction" in kinds(row):
        yield wrong(_with(row.samples[0], "reduction", "avg"), "reduction must be none, mean")


def _numbers(row: Row) -> Iterator[Wrong]:
    """Floats where the op takes indices or truths, and whole numbers for truths."""
    first = row.samples[0]
    for i, one in enumerate(first.inputs if fixed_types(first) else ()):
        for kind in {"index": ["normal"], "bool": ["normal", "index"]}.get(one.kind, []):
            other = replace(one, kind=kind, below=2)
            inputs = (*first.inputs[:i], other, *first.inputs[i + 1 :])
            name = "float64" if kind == "normal" else "int64"
            yield wrong(replace(first, inputs=inputs), name)


def _with(sample: Sample, name: str, value: Any) -> Sample:
    return replace(sample, options={**sample.options, name: value})
