"""Observers see each call of an op, in the forward and in the backward pass, as it is made.

Ops report their calls only while somebody observes: they are called in another way then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from gradcli.engine.presence import Presence


class Observer(Protocol):
    """What is told of the calls of one thread; arrays are as the call has left them."""

    def forward(
        self, op: str, inputs: Sequence[Any], options: Mapping[str, object], outputs: Sequence[Any]
    ) -> None:
        """An op has made its outputs; an input that was left out is None."""

    def backward(self, node: Any, grads: Sequence[Any], results: Sequence[Any]) -> None:
        """A node has computed the gradients of its inputs; None where there is none."""


_current: ContextVar[Observer | None] = ContextVar("observer", default=None)
_observers = Presence()

# Whoever observes this thread, if anyone does.
current: Callable[[], Observer | None] = _current.get
watch = _observers.watch


@contextmanager
def by(observer: Observer | None) -> Iterator[None]:
    """Tell this one of the calls inside a `with` block; None: nobody."""
    token = _current.set(observer)
    _observers.enter()
    try:
        yield
    finally:
        _observers.leave()
        _current.reset(token)


def tell_of(ops: Any) -> None:
    """While somebody observes, tell of each call of an op of this class."""
    plain = ops._call

    def observed_call(self: Any, inputs: Sequence[Any], options: Mapping[str, object]) -> Any:
        result = plain(self, inputs, options)
        observer = current()
        if observer is not None:
            results = result if isinstance(result, tuple) else (result,)
            operands = [None if t is None else t.array for t in inputs]
            observer.forward(self.name, operands, options, [y.array for y in results])
        return result

    def switch(on: bool) -> None:
        ops._call = observed_call if on else plain

    watch(switch)
