"""Backward passes: backward, grad, and the blocks that enable and disable gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from gradcli import deprecated
from gradcli.engine import walk
from gradcli.engine.argument import check_arguments
from gradcli.engine.array import Array, full
from gradcli.engine.composite import function
from gradcli.engine.custom import Function
from gradcli.engine.graph import (
    Edge,
    enable_grad,
    grad_enabled,
    no_grad,
    run_with_grad,
    set_grad_enabled,
)
from gradcli.engine.tensor import Tensor, parents_of
from gradcli.engine.walk import CreateGraphWalk, Targets, Walk, detect_anomaly
from gradcli.errors import AutogradError, DTypeError, OptionError
from gradcli.wording import quantity

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]

inference_mode = no_grad
is_grad_enabled = grad_enabled

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return deprecated.lookup(__name__, {"recording": "is_grad_enabled"}, name)


Some: TypeAlias = Tensor | Sequence[Tensor]


def _as_list(name: str, tensors: Any, least: type | None = None) -> list[Any]:
    """One tensor, or several, as a list; None among them where `least` allows it."""
    several = isinstance(tensors, Iterable) and not isinstance(tensors, Tensor)
    items = list(tensors) if several else [tensors]
    for tensor in items:
        if not isinstance(tensor, Tensor) and not (least and tensor is None):
            raise DTypeError(f"{name}: takes Tensors, got {type(tensor).__name__}")
    return items


def _roots(name: str, outputs: object, grads: object, create_graph: bool) -> list[tuple[Edge, Any]]:
    """The edges where backward begins, each with its gradient."""
    starts = _as_list(name, outputs)
    seeds = [None] * len(starts) if grads is None else _as_list(name, grads, type(None))
    if len(seeds) != len(starts):
        raise OptionError(
            f"{name}: {quantity(len(seeds), 'gradient')} for {quantity(len(starts), 'tensor')}"
        )
    roots = []
    for y, first in zip(starts, seeds, strict=True):
        edge = parents_of([y])[0]
        if edge is None:
            raise AutogradError(f"{name}: this tensor depends on nothing that asks for a gradient")
        begin = walk.seed(y.array, None if first is None else first.array, name)
        if create_graph:
            roots.append((edge, Tensor(begin) if first is None else first.to(y.dtype)))
        else:
            roots.append((edge, begin))
    return roots


def _go_back(
    roots: list[tuple[Edge, Any]], retain: bool | None, create_graph: bool, targets: Targets | None
) -> None:
    kind = CreateGraphWalk if create_graph else Walk
    way = kind(retain_graph=create_graph if retain is None else retain, targets=targets)
    for edge, first in roots:
        way.begin(edge, first)
    run_with_grad(create_graph, way.run)  # cheaper than a `with` block, in every backward


@function(method=False)
def backward(
    tensors: Some,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Some | None = None,
) -> None:
    """Add the gradients of the tensors, times `grad_tensors`, to those of the leaves."""
    roots = _roots("backward", tensors, grad_tensors, create_graph)
    if inputs is None:
        _go_back(roots, retain_graph, create_graph, None)
        return
    leaves = _as_list("backward", inputs)
    if any(x.leaf is None or not x.is_leaf for x in leaves):
        raise AutogradError("backward: inputs must be leaves that ask for a gradient; use grad()")
    targets = Targets([edge for edge, _ in roots], [(x.leaf, 0) for x in leaves])
    _go_back(roots, retain_graph, create_graph, targets)
    arrivals = CreateGraphWalk(retain_graph=True) if create_graph else Walk(retain_graph=True)
    for x in leaves:
        gradient = targets.grads.pop((x.leaf.number, 0), None)
        if gradient is not None:
            arrivals.deposit(x.leaf, gradient)


@check_arguments
def grad(
    outputs: Some,
    inputs: Some,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, times `grad_outputs`, one for each input; no `grad` changes.

    With create_graph they have a history and can be differentiated again.
    """
    roots = _roots("grad", outputs, grad_outputs, create_graph)
    tensors = _as_list("grad", inputs)
    parents = parents_of(tensors)
    if any(parent is None for parent in parents):
        raise AutogradError("grad: an input does not ask for a gradient; see requires_grad_()")
    edges = [parent for parent in parents if parent is not None]
    targets = Targets([edge for edge, _ in roots], edges)
    _go_back(roots, retain_graph, create_graph, targets)
    gradients = []
    for x, (origin, output) in zip(tensors, edges, strict=True):
        value = targets.grads[origin.number, output]
        if value is None and materialize_grads:
            value = full(x.shape, 0, x.dtype)
        if value is None and not allow_unused:
            raise AutogradError(
                "grad: the outputs do not depend on one of the inputs; "
                "pass allow_unused=True to get None for it"
            )
        gradients.append(Tensor(value) if isinstance(value, Array) else value)
    return tuple(gradients)
