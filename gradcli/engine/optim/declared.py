"""Optimizers of the library: declared by their options, as fields of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import wraps
from types import SimpleNamespace
from typing import Annotated, Any

from gradcli.engine.array import Array, run
from gradcli.engine.constructor import FieldConstructor, in_library
from gradcli.engine.kind import Bound, Kind, Share
from gradcli.engine.optim.optimizer import Group, Optimizer

Betas = Annotated[tuple[Share, Share], Bound("two numbers, each in [0, 1)")]
Call = tuple[str, tuple[float, ...]]  # a kernel, and the options that it reads


class DeclaredOptimizer(FieldConstructor, Optimizer):
    """An optimizer of the library: its fields are its options, which groups begin with."""

    params: Iterable[Any]

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        if not in_library(cls):
            return
        take: Callable[..., None] = vars(cls)["__init__"]

        @wraps(take)
        def construct(self: DeclaredOptimizer, *args: object, **keywords: object) -> None:
            fields = SimpleNamespace()  # in place of self, whose attributes are its user's
            take(fields, *args, **keywords)
            options = {name: getattr(fields, name) for name in cls.hints}
            super().__init__(options.pop("params"), options)

        cls.__init__ = construct  # type: ignore[method-assign]
        for name in vars(cls).keys() & cls.hints.keys():
            delattr(cls, name)

    def _check(self, group: Group) -> None:
        """Refuse options that do not fit their declarations; numbers become Python's."""
        for name in self.defaults:
            group[name] = Kind.of(self.hints[name]).convert_argument(self._name, name, group[name])


class KernelOptimizer(DeclaredOptimizer):
    """One whose step is a call of a kernel for each parameter."""

    maximize: bool = field(default=False, kw_only=True)

    def call(self, group: Group) -> Call:
        """The kernel for these options, and those that it reads."""
        raise NotImplementedError

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One call of the kernel."""
        kernel, options = self.call(group)
        run(kernel, grad, hyper, parameter, *state, options=options)
