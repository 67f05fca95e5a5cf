"""The calls that ops with windows are tried with: written for images, and the same for lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradcli.engine.sample import Sample, Wrong
from gradcli.engine.shape import Shape

# What refusals say of two dimensions, and of one.
_WORDS = {"2d": "1d", "H, W": "L", "rows, columns": "length", "a pair of ": ""}


def samples_in(dims: int, samples: Sequence[Sample]) -> list[Sample]:
    """The calls for images, or for lines: a line is an image without a height."""
    return list(samples) if dims == 2 else [_on_line(case) for case in samples]


def wrong_in(dims: int, wrong: Sequence[Wrong]) -> list[Wrong]:
    """The calls that are refused for images, or for lines."""
    return list(wrong) if dims == 2 else [_refused_on_line(case) for case in wrong]


def _on_line(case: Sample) -> Sample:
    inputs = (replace(x, shape=_without_height(x.shape)) for x in case.inputs)
    return Sample(tuple(inputs), {name: _width(value) for name, value in case.options.items()})


def _without_height(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1]) if shape else shape


def _width(value: Any) -> Any:
    return value[1:] if isinstance(value, tuple) else value


def _refused_on_line(case: Wrong) -> Wrong:
    match = re.sub(r"-?\d+ x (-?\d+)$", r"\1;", case.match)
    for images, lines in _WORDS.items():
        match = match.replace(images, lines)
    return replace(case, sample=_on_line(case.sample), match=match)
