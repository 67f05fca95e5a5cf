"""Function: an op of the user's own, with a backward in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.dataclass import dataclass
from gradcli.engine import graph
from gradcli.engine.array import Array, full
from gradcli.engine.double_backward import as_tuple
from gradcli.engine.dtype import DType
from gradcli.engine.graph import Gradients, Node
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, parents_of
from gradcli.errors import AutogradError, DTypeError, OptionError, ShapeError
from gradcli.wording import quantity


class Context:
    """What `forward` hands on to `backward`; other things are kept as attributes of it.

    Attributes:
        needs_input_grad: for each argument of apply, whether its gradient is wanted.
        saved_tensors: in backward, what save_for_backward was given.
    """

    def __init__(self, needs: Sequence[bool]) -> None:
        self.needs_input_grad = tuple(needs)
        self.saved_tensors: tuple[Tensor | None, ...] = ()
        self.constant: list[Tensor] = []
        self.zeros = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or anything between; it is noticed if one is overwritten."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise DTypeError(
                    f"save_for_backward: takes Tensors or None, got {type(tensor).__name__}; "
                    "keep other things as attributes of ctx"
                )
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These outputs have no gradient."""
        self.constant += tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None where no gradient arrived."""
        self.zeros = value


class Function:
    """An op with `forward(ctx, ...)` and `backward(ctx, *grads)`, both static; called by `apply`.

    Forward runs without being remembered. Backward gets a gradient for each output and returns one
    (or None) for each argument; where it is written with ops, it can be differentiated again.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The values: `forward(ctx, ...)`, or `forward(...)` with a setup_context."""
        raise NotImplementedError("a Function needs a static forward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """What to keep, where forward takes no ctx."""
        raise NotImplementedError("forward takes ctx here")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the arguments from those of the outputs."""
        raise NotImplementedError("a Function needs a static backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """What forward gives, with backward in its history."""
        edges = parents_of([a if isinstance(a, Tensor) else None for a in args])
        if not graph.grad_enabled():
            edges = [None] * len(args)
        ctx = Context([edge is not None for edge in edges])
        with graph.no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        if not any(edges):
            return result
        outputs = as_tuple(result)
        saved = _Saved.of(ctx, args, outputs)
        node = Node(_Rule(cls), edges, saved, len(outputs), saved.arrays())
        fixed = {id(tensor) for tensor in ctx.constant}
        ctx.constant = []
        arg_ids = {id(a) for a in args}
        results = tuple(
            _with_history(y, node, i, id(y) in arg_ids)
            if isinstance(y, Tensor) and id(y) not in fixed
            else y
            for i, y in enumerate(outputs)
        )
        return results if isinstance(result, tuple) else results[0]


def _with_history(y: Tensor, node: Node, output: int, argument: bool) -> Tensor:
    origin, alias = node if y.is_floating_point() else None, argument or y.alias
    return Tensor(y.array, node=origin, output=output, alias=alias)


class TensorKind(NamedTuple):
    """What a gradient must be like."""

    shape: Shape
    dtype: DType


@dataclass
class _Saved:
    """What a node of a Function saves; outputs without their history, which would be a cycle."""

    ctx: Context
    saved: list[tuple[Tensor | None, int | None]]
    inputs: list[TensorKind | None]
    outputs: list[TensorKind | None]

    @classmethod
    def of(cls, ctx: Context, args: Sequence[Any], outputs: Sequence[Any]) -> _Saved:
        """The tensors that ctx was given, told apart."""
        index = {id(y): i for i, y in enumerate(outputs) if isinstance(y, Tensor)}
        index = {key: i for key, i in index.items() if all(key != id(a) for a in args)}
        saved = [(t, None if t is None else index.get(id(t))) for t in ctx.saved_tensors]
        ctx.saved_tensors = ()
        return cls(ctx, saved, _kinds(args), _kinds(outputs))

    def arrays(self) -> list[Array]:
        """What must not be overwritten."""
        return [t.array for t, _ in self.saved if t is not None]

    def give(self, node: Node | None) -> Context:
        """The context as backward sees it; outputs have their history where `node` is given."""
        self.ctx.saved_tensors = tuple(
            t if t is None or i is None else Tensor(t.array, node=node, output=i)
            for t, i in self.saved
        )
        return self.ctx

    def filled(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Zeros where no gradient arrived, unless ctx wants None there."""
        return [
            Tensor(full(like.shape, 0, like.dtype))
            if grad is None and like is not None and self.ctx.zeros
            else grad
            for grad, like in zip(grads, self.outputs, strict=True)
        ]


def _kinds(values: Sequence[Any]) -> list[TensorKind | None]:
    return [TensorKind(a.shape, a.dtype) if isinstance(a, Tensor) else None for a in values]


class _Rule:
    """How gradients go back through a Function."""

    def __init__(self, function: type[Function]) -> None:
        self.name = function.__name__
        self._function = function

    def backward(self, grads: Gradients, saved: _Saved) -> Gradients:
        """Call the function's backward with gradients disabled."""
        arrivals = saved.filled([None if g is None else Tensor(g) for g in grads])
        with graph.no_grad():
            result = self._function.backward(saved.give(None), *arrivals)
        return [None if g is None else g.array for g in self._check(result, saved)]

    def backward_create_graph(self, node: Node, grads: Sequence[Any]) -> Sequence[Any]:
        """Call the function's backward, whose ops build a graph."""
        result = self._function.backward(node.saved.give(node), *node.saved.filled(grads))
        return self._check(result, node.saved)

    def _check(self, result: Any, saved: _Saved) -> list[Tensor | None]:
        """One gradient for each argument, of its shape and type."""
        saved.ctx.saved_tensors = ()
        grads = list(result) if isinstance(result, (tuple, list)) else [result]
        count = len(saved.inputs)
        if len(grads) < count or any(g is not None for g in grads[count:]):
            raise OptionError(
                f"{self.name}: backward gave {quantity(len(grads), 'gradient')} for "
                f"{quantity(count, 'argument')}"
            )
        return [self._check_grad(g, like) for g, like in zip(grads, saved.inputs, strict=False)]

    def _check_grad(self, grad: Any, like: TensorKind | None) -> Tensor | None:
        if grad is None:
            return None
        if not isinstance(grad, Tensor):
            raise DTypeError(
                f"{self.name}: backward must give Tensors or None, got {type(grad).__name__}"
            )
        if like is None:
            raise AutogradError(f"{self.name}: backward gave a gradient for what is no Tensor")
        if grad.shape != like.shape:
            raise ShapeError(
                f"{self.name}: backward gave a gradient of {grad.shape} for {like.shape}"
            )
        return grad.to(like.dtype)
