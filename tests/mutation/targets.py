"""Calls that are right: every op and function of the table, on each sample that it declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from gradcli import engine
from gradcli.engine.gradcheck import Row, every_op, make_inputs
from gradcli.engine.op import Op
from gradcli.engine.sample import Sample
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor

Arguments = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """A call that is right.

    Attributes:
        name: what a refusal must name, or one of the `names`.
        call: what is called.
        arguments: makes them; new ones each time.
        parameters: their names, in order, and their declared types.
        variadic: the one of them that takes any number of arguments, if there is one.
        after: what a user does next with the result.
        method: whether the first argument is what the method belongs to, and stays as it is.
    """

    name: str
    call: Callable[..., Any]
    arguments: Callable[[], Arguments]
    parameters: dict[str, Any]
    variadic: str = ""
    after: Callable[[Any], Any] = lambda result: None
    names: frozenset[str] = frozenset()
    method: bool = False

    @property
    def open(self) -> bool:
        """Whether it takes any further arguments by name."""
        kinds = {p.kind for p in inspect.signature(self.call).parameters.values()}
        return not self.method and inspect.Parameter.VAR_KEYWORD in kinds


def declared(call: Callable[..., Any]) -> tuple[dict[str, Any], str]:
    """The names of the parameters with their types, and the variadic one."""
    where = call.__init__ if inspect.isclass(call) else call
    hints = getattr(where, "hints", None) or types_of(where)
    listed = inspect.signature(call).parameters.values()
    variadic = next((p.name for p in listed if p.kind is p.VAR_POSITIONAL), "")
    named = [p.name for p in listed if p.kind is not p.VAR_KEYWORD]
    return {name: hints.get(name, Any) for name in named}, variadic


_WORDS = {"Any": Any, "Tensor": Tensor, "Generator": engine.Generator}


def types_of(call: Callable[..., Any]) -> dict[str, Any]:
    """The declared types, also of functions whose module imports Tensor for the checker only."""
    return get_type_hints(call, localns=_WORDS, include_extras=True)


def backward(result: Any) -> None:
    """The gradients of everything that has one."""
    for y in result if isinstance(result, tuple | list) else [result]:
        if isinstance(y, Tensor) and y.requires_grad:
            y.sum().backward(retain_graph=True)


@cache
def op_targets() -> dict[str, list[Target]]:
    """The calls of each op, as a function and as a method."""
    return {row.name: list(_of(row)) for row in every_op()}


def _of(row: Row) -> Iterator[Target]:
    parameters, variadic = _parameters(row)
    first = next(iter(parameters), "")
    names = frozenset([row.name.rstrip("_")])  # an op in place refuses as the op does
    for sample in row.samples:
        arguments = _arguments(row, sample)
        yield Target(row.name, OPS[row.name], arguments, parameters, variadic, backward, names)
        if hasattr(Tensor, row.name) and isinstance((arguments()[0] or [None])[0], Tensor):
            rest = {name: hint for name, hint in parameters.items() if name != first}
            method = _method(row.name)
            yield Target(row.name, method, arguments, rest, variadic, backward, names, method=True)


def _method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **named: getattr(x, name)(*args, **named)


def _parameters(row: Row) -> tuple[dict[str, Any], str]:
    if not isinstance(row, Op):
        return declared(OPS[row.name])
    return {name: row.hints[name] for name in (*row.inputs, *row.options)}, ""


def _arguments(row: Row, sample: Sample) -> Callable[[], Arguments]:
    def make() -> Arguments:
        inputs = make_inputs(sample, dtype=engine.float32)
        if getattr(row, "differentiable", False) and not row.name.endswith("_"):
            inputs = [_wanting(x) for x in inputs]
        if isinstance(row, Op):
            return list(inputs), dict(sample.options)
        return row.arrange(inputs, dict(sample.options))

    return make


def _wanting(x: Tensor | None) -> Tensor | None:
    return x.requires_grad_() if x is not None and x.is_floating_point() else x
