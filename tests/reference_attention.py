"""The reference of attention, in plain Python float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grid import Grid, broadcast_shape, pick
from reference_linalg import pick_matrix


def _weights(scores: list[float]) -> list[float]:
    top = max(scores, default=0.0)
    if top == -math.inf:
        return [0.0] * len(scores)
    raised = [math.exp(score - top) for score in scores]
    return [value / math.fsum(raised) for value in raised]


def _repeated(x: Grid, times: int) -> Grid:
    """Each head `times` times."""
    *lead, heads, rows, columns = x.shape
    shape = (*lead, heads * times, rows, columns)
    return Grid.from_function(shape, lambda at: x[(*at[:-3], at[-3] // times, *at[-2:])])


def _attention(
    query: Grid,
    key: Grid,
    value: Grid,
    mask: Grid | None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: float | None = None,
) -> Grid:
    if enable_gqa:
        key, value = (_repeated(x, query.shape[-3] // x.shape[-3]) for x in (key, value))
    depth, keys = query.shape[-1], key.shape[-2]
    lead = broadcast_shape(broadcast_shape(query.shape[:-2], key.shape[:-2]), value.shape[:-2])
    factor = scale if scale is not None else 1 / math.sqrt(depth or 1)

    def score(front: list[int], i: int, j: int) -> float:
        if is_causal and j > i:
            return -math.inf
        terms = (
            pick_matrix(query, front, i, d) * pick_matrix(key, front, j, d) for d in range(depth)
        )
        total = factor * math.fsum(terms)
        if softcap is not None:
            total = softcap * math.tanh(total / softcap)
        if mask is None:
            return total
        masked = pick(mask, (*front, i, j))
        if isinstance(masked, bool):
            return total if masked else -math.inf
        return total + masked

    def element(at: tuple[int, ...]) -> float:
        *front, i, f = at
        weights = _weights([score(front, i, j) for j in range(keys)])
        return math.fsum(w * pick_matrix(value, front, j, f) for j, w in enumerate(weights))

    return Grid.from_function((*lead, query.shape[-2], value.shape[-1]), element)


REFERENCES: dict[str, Callable[..., Any]] = {"scaled_dot_product_attention": _attention}
