"""Double backward: an op's gradient computed by ops, so that it has a graph itself.

Gradient functions work on Arrays and build no graph. With `create_graph=True` one of three rules
replaces them: the rule of linear ops, that of fused ops through their decomposition, or one written
with ops.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradcli.engine import graph, table
from gradcli.engine.array import Array, full
from gradcli.engine.dtype import DType
from gradcli.engine.graph import Gradients, Node
from gradcli.engine.shape import Shape, repeated_dims
from gradcli.engine.tensor import Tensor, parents_of
from gradcli.engine.walk import CreateGraphWalk, Targets

Tensors = Sequence[Tensor | None]


class OpLike(Protocol):
    """The part of an op that these rules use."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: dict[str, Any]
    decomposition: Callable[..., Any] | None
    recomputed: Callable[..., dict[str, Array | None]] | None

    @property
    def forward(self) -> Callable[..., Any]:
        """The op on Arrays."""
        ...

    def backward(self, grads: Gradients, saved: Any) -> Gradients:
        """Its gradients, as Arrays."""
        ...

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The op on Tensors."""
        ...


def as_tuple(result: Any) -> tuple[Any, ...]:
    """One result, or several, as several."""
    return result if isinstance(result, tuple) else (result,)


# -- linear ops ------------------------------------------------------------------------------------


class Transposed:
    """The gradient of a linear op, as an op: its own gradient is the linear op."""

    def __init__(self, op: OpLike, constants: dict[str, Array], options: dict[str, Any]) -> None:
        self.name = f"gradient of {op.name}"
        self._op = op
        self._constants = constants
        self._options = options

    def backward(self, grads: Gradients, saved: list[tuple[Shape, DType]]) -> Gradients:
        """The op applied to the gradients; 0 where there is none."""
        inputs = self._inputs(
            [_zeros(*kind).array if g is None else g for g, kind in zip(grads, saved, strict=True)]
        )
        results = as_tuple(self._op.forward(*inputs, **self._options))
        return [array if array.dtype.is_floating_point else None for array in results]

    def backward_create_graph(self, node: Node, grads: Tensors) -> Tensors:
        """The same with Tensors."""
        floats = [
            _zeros(*kind) if g is None else g for g, kind in zip(grads, node.saved, strict=True)
        ]
        inputs = [Tensor(x) if isinstance(x, Array) else x for x in self._inputs(floats)]
        return as_tuple(self._op(*inputs, **self._options))

    def _inputs(self, floats: Sequence[Any]) -> list[Any]:
        """In the op's order: constants where there are some, what arrived elsewhere."""
        rest = iter(floats)
        return [
            self._constants[name] if name in self._constants else next(rest)
            for name in self._op.inputs
        ]


def _zeros(shape: Shape, dtype: DType) -> Tensor:
    return Tensor(full(shape, 0, dtype))


def linear(op: OpLike, node: Node, grads: Tensors) -> Tensors:
    """The gradient of an op that is linear in its float inputs, all others being constants."""
    values = node.saved
    if "needs" in values:  # the shapes and types that follow are asked of constants too
        values = {**values, "needs": (True,) * len(op.inputs)}
    computed = op.backward([None if g is None else g.array for g in grads], values)
    constants = {name: node.saved[name] for name in op.inputs if name in node.saved}
    floats = [i for i, name in enumerate(op.inputs) if name not in constants]
    arrays = [_or_zero(computed[i], node, i) for i in floats]
    rule = Transposed(op, constants, node.options or {})
    parents = parents_of(grads) if graph.grad_enabled() else []
    kinds = [(array.shape, array.dtype) for array in arrays]
    new = None
    if any(parents):
        new = Node(rule, parents, kinds, len(arrays), constants.values())
    result: list[Tensor | None] = [None] * len(op.inputs)
    for output, (i, array) in enumerate(zip(floats, arrays, strict=True)):
        if node.parents[i] is not None:
            result[i] = Tensor(array, node=new, output=output)
    return result


# -- fused ops through their decomposition ---------------------------------------------------------


def through(function: Callable[..., Any], inputs: Tensors, grads: Tensors) -> Tensors:
    """The gradients of a function composed of ops, for each of its inputs."""
    with graph.enable_grad():
        points = [x if x is None else alias(x) for x in inputs]
        since = graph.now()
        outputs = as_tuple(function(*points))
        roots = [
            ((y.node, y.output), grad)
            for y, grad in zip(outputs, grads, strict=False)
            if y is not None and y.node is not None and grad is not None
        ]
        parents = parents_of(points)
        targets = Targets([edge for edge, _ in roots], [p for p in parents if p is not None], since)
        walk = CreateGraphWalk(retain_graph=True, targets=targets)
        for edge, grad in roots:
            walk.begin(edge, grad)
        walk.run()
    gradients = targets.grads
    return [None if p is None else gradients[p[0].number, p[1]] for p in parents]


def transposed(function: Callable[[Tensor], Tensor], shape: Shape, grad: Tensor) -> Tensor:
    """The gradient of a linear function of one tensor of this shape."""
    point = _zeros(shape, grad.dtype).requires_grad_()
    (gradient,) = through(function, [point], [grad])
    assert gradient is not None, "a linear function depends on its input"
    return gradient


class _Alias:
    """The rule of a tensor under another name: gradients pass through."""

    name = "alias"

    def backward(self, grads: Gradients, saved: Any) -> Gradients:
        """Unchanged."""
        del saved
        return grads

    def backward_create_graph(self, node: Node, grads: Tensors) -> Tensors:
        """Unchanged."""
        del node
        return grads


_ALIAS = _Alias()


def alias(x: Tensor) -> Tensor:
    """The same memory under a node of its own; x itself where it has no history."""
    parents = parents_of([x])
    return x if parents[0] is None else Tensor(x.array, node=Node(_ALIAS, parents, (), 1))


def decomposition(op: OpLike, node: Node, grads: Tensors) -> Tensors:
    """The gradient of a fused op through its decomposition.

    An input that is not saved has a gradient that does not depend on it, so that 0 stands for it,
    unless it is recomputed.
    """
    options = node.options or {}
    saved = node.saved
    if op.recomputed is not None:
        saved = {**saved, **op.recomputed(saved, {**op.options, **options})}
    lacking = [i for i, name in enumerate(op.inputs) if name not in saved and node.parents[i]]
    first: Gradients = ()
    if lacking:
        first = op.backward([None if g is None else g.array for g in grads], node.saved)
    inputs: list[Tensor | None] = []
    for i, name in enumerate(op.inputs):
        array = saved.get(name)
        if i in lacking:
            array = _or_zero(first[i], node, i)
            array = full(array.shape, 0, array.dtype)
        inputs.append(None if array is None else _of_edge(array, node.parents[i]))
    function = op.decomposition
    assert function is not None
    return through(lambda *points: function(*points, **options), inputs, grads)


RULES: dict[str, Callable[..., Tensors]] = {"linear": linear, "decomposition": decomposition}


# -- rules written with ops ------------------------------------------------------------------------


def bind_rule(
    op: OpLike, rule: Callable[..., Any], also: Sequence[str] = ()
) -> Callable[[Node, Tensors], Tensors]:
    """A rule from Tensors to Tensors, called with the values that its parameters name.

    They are what the op saves, with its history, options, `needs`, and the `shapes` and `dtypes`
    of the inputs if the gradient function asks for them as well.
    """
    names = list(also) + [
        p.name
        for p in list(inspect.signature(rule).parameters.values())[1:]
        if p.kind is not p.VAR_KEYWORD
    ]

    def backward(node: Node, grads: Tensors) -> Tensors:
        values = {name: _value(op, node, name) for name in names}
        return as_tuple(rule(grads[0] if node.outputs == 1 else tuple(grads), **values))

    return backward


def _value(op: OpLike, node: Node, name: str) -> Any:
    if name == "needs":
        return tuple(parent is not None for parent in node.parents)
    if name in op.options:
        return (node.options or {}).get(name, op.options[name])
    array = node.saved[name]
    if not isinstance(array, Array):
        return array
    if name in op.inputs:
        return _of_edge(array, node.parents[op.inputs.index(name)])
    output = op.outputs.index(name)
    visible = output < node.outputs and array.dtype.is_floating_point
    return Tensor(array, node=node if visible else None, output=output)


def _of_edge(array: Array, edge: graph.Edge | None) -> Tensor:
    """A saved input with its history."""
    if edge is None:
        return Tensor(array)
    origin, output = edge
    if isinstance(origin, Node):
        return Tensor(array, node=origin, output=output)
    result = Tensor(array)
    result.leaf = origin
    return result


def _or_zero(grad: Array | None, node: Node, i: int) -> Array:
    """The gradient of an input; 0 where none was wanted."""
    return full(node.saved["shapes"][i], 0, node.saved["dtypes"][i]) if grad is None else grad


def sum_to(grad: Tensor, shape: Shape) -> Tensor:
    """A gradient summed over what broadcasting had repeated, by ops."""
    if grad.shape == shape:
        return grad
    dims = repeated_dims(grad.shape, shape)
    return table.reshape(table.sum(grad, dims) if dims else grad, shape)
