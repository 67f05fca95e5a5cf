"""Results of ops that give two tensors, by name and in order, as in torch."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.engine.tensor import Tensor


class Sorted(NamedTuple):
    """Values in order, and their indices before."""

    values: Tensor
    indices: Tensor


class Extreme(NamedTuple):
    """What max and min along a dimension return."""

    values: Tensor
    indices: Tensor
