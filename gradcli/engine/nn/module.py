"""Module: parameters, buffers and other modules under names, found through their attributes."""

from __future__ import annotations

__all__ = ["Module"]

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording
from gradcli.engine.constructor import check_library_constructor
from gradcli.engine.device.context import device_named
from gradcli.engine.dtype import DType
from gradcli.engine.hooks import RemovableHandle
from gradcli.engine.nn import hooks, state
from gradcli.engine.nn.backward_hooks import BackwardHook
from gradcli.engine.nn.looks import Table, watched
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError

T = TypeVar("T")
_MISSING = object()


class StateEntry(NamedTuple):
    """One tensor of a state_dict, and where it lives."""

    name: str
    tensor: Tensor


class Module:
    """What has weights and a `forward`; calling it runs `forward`.

    Parameters, buffers and modules become known by being assigned to attributes. A module that is
    reachable twice is walked once; a shared parameter has one entry in `parameters()` and one
    name for each place in `state_dict()`, as in torch.
    """

    _repr_format: ClassVar[str] = ""  # attributes as torch shows them: "{0.dim}, eps={0.eps}"
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _not_saved: set[str]
    _hooks: tuple[hooks.ForwardHook | BackwardHook | hooks.Recompute, ...]

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        check_library_constructor(cls)

    def __init__(self) -> None:
        set_plain = super().__setattr__
        set_plain("training", True)
        set_plain("_parameters", Table())
        set_plain("_buffers", Table())
        set_plain("_modules", Table())
        set_plain("_not_saved", set())
        set_plain("_hooks", ())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` gives, between the hooks."""
        if self._hooks:
            return hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., object],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns is the output instead.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`. A captured step runs it while
        it is recorded only.
        """
        return hooks.register(self, hooks.ForwardHook(hook, False, with_kwargs), prepend)

    def register_forward_pre_hook(
        self,
        hook: Callable[..., object],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; what it returns are the arguments instead.

        With `with_kwargs` it is `hook(module, args, kwargs)` and gives both.
        """
        return hooks.register(self, hooks.ForwardHook(hook, True, with_kwargs), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., object], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the arguments' gradients are known.

        What it returns are the arguments' gradients instead. A captured step runs it while it is
        recorded only.
        """
        return hooks.register(self, BackwardHook(hook, False), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., object], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before; what it returns are the results' gradients."""
        return hooks.register(self, BackwardHook(hook, True), prepend)

    # -- attributes ----------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        tables = self.__dict__
        if "_parameters" not in tables:
            raise OptionError(
                f"{type(self).__name__}: call super().__init__() before setting '{name}'"
            )
        if isinstance(value, Parameter):
            self._forget(name)
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif name in self._parameters:
            self._set_to_none(self._parameters, name, value, "a Parameter")
        elif name in self._modules:
            self._set_to_none(self._modules, name, value, "a Module")
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(f"buffer '{name}' takes a Tensor, got {type(value).__name__}")
            self._buffers[name] = value
        else:
            self._set_plain(name, value)

    def _set_plain(self, name: str, value: object) -> None:
        recorder = recording.current()
        if recorder is not None:
            recorder.wrote(self, name)
        if self.__dict__.get(name, _MISSING) is not value:
            super().__setattr__(name, value)
            recording.invalidate()

    def _set_to_none(self, table: dict[str, Any], name: str, value: object, kind: str) -> None:
        if value is not None:
            raise DTypeError(f"'{name}' of {type(self).__name__} takes {kind}, got {value!r:.60}")
        table[name] = None

    def _forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        for table in (self._parameters, self._buffers, self._modules):
            table.pop(name, None)
        self._not_saved.discard(name)

    def __getattr__(self, name: str) -> Any:
        tables = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if name in tables.get(table, ()):
                return tables[table][name]
        raise AttributeError(f"{type(self).__name__} has no '{name}'")

    def __delattr__(self, name: str) -> None:
        if any(name in table for table in (self._parameters, self._buffers, self._modules)):
            self._forget(name)
        else:
            super().__delattr__(name)
            recording.invalidate()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Enter a parameter, or None where an optional one is left out."""
        self._check_name(name)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Enter a tensor that is no parameter; saved with the weights if persistent."""
        self._check_name(name)
        self._buffers[name] = tensor
        if not persistent:
            self._not_saved.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Enter a module under a name that need not be an identifier."""
        if not name or "." in name:
            raise OptionError(f"a module's name must not be empty or have a dot, got {name!r}")
        if name not in self._modules:
            self._check_name(name)
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, name: str) -> None:
        if not name or "." in name:
            raise OptionError(f"a name must not be empty or have a dot, got {name!r}")
        if hasattr(self, name):
            raise OptionError(f"{type(self).__name__} already has '{name}'")

    # -- walking -------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, each once."""
        ids: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in ids:
                ids.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below, with dotted names, parents first."""
        ids: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if remove_duplicate and id(module) in ids:
                continue
            ids.add(id(module))
            yield path, module
            below = [
                (f"{path}.{name}" if path else name, child)
                for name, child in module._modules.items()
                if child is not None
            ]
            stack.extend(reversed(below))

    def modules(self) -> Iterator[Module]:
        """This module and all below, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with dotted names; a shared one once, under its first name."""
        return self._walk_named(
            lambda module: module._parameters, prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with dotted names, each once."""
        return self._walk_named(lambda module: module._buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _walk_named(
        self,
        table: Callable[[Module], Mapping[str, T | None]],
        prefix: str,
        recurse: bool,
        remove_duplicate: bool,
    ) -> Iterator[tuple[str, T]]:
        ids: set[int] = set()
        modules = self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in table(module).items():
                if value is None or (remove_duplicate and id(value) in ids):
                    continue
                ids.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def get_submodule(self, target: str) -> Module:
        """The module of this dotted name; the empty one is this module."""
        module = dict(self.named_modules(remove_duplicate=False)).get(target)
        if module is None:
            raise OptionError(f"{type(self).__name__} has no module '{target}'")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of this dotted name."""
        parameter = dict(self.named_parameters(remove_duplicate=False)).get(target)
        if parameter is None:
            raise OptionError(f"{type(self).__name__} has no parameter '{target}'")
        return parameter

    # -- saving and loading --------------------------------------------------------------------

    def _entries(self, prefix: str) -> Iterator[StateEntry]:
        """All that is saved, shared tensors under each of their names."""
        for path, module in self.named_modules(prefix, remove_duplicate=False):
            start = f"{path}." if path else ""
            saved = {k: v for k, v in module._buffers.items() if k not in module._not_saved}
            for name, tensor in (*module._parameters.items(), *saved.items()):
                if tensor is not None:
                    yield StateEntry(start + name, tensor)

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name; they share the module's memory."""
        return {
            name: tensor if keep_vars else tensor.detach()
            for name, tensor in self._entries(prefix.removesuffix("."))
        }

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True
    ) -> state.IncompatibleKeys:
        """Copy tensors in by name. Everything is compared first: an error leaves all as it was."""
        return state.load(type(self).__name__, dict(self._entries("")), state_dict, strict)

    # -- changing all of it --------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Training mode: dropout drops, batch norm uses and records the batch."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Evaluation mode."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or overwrite them with 0."""
        for parameter in self.parameters():
            if parameter.leaf is not None:
                parameter.leaf.clear(set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Ask for the gradients of all parameters, or no longer."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module, children first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, dtype: DType | str) -> Self:
        """Parameters and float buffers as another float type; the objects stay the same ones.

        The name of a device ("cpu", "cuda", "cuda:1", "metal", "meta") is accepted too: all move
        there.
        """
        if isinstance(dtype, str):
            there = device_named(dtype)
            for tensor in (*self.parameters(), *self.buffers()):
                state.move(tensor, there)
            return self
        if not isinstance(dtype, DType) or not dtype.is_floating_point:
            raise DTypeError(
                f"to: a module's type must be float32, float64 or bfloat16, got {dtype!r}"
            )
        for tensor in (*self.parameters(), *self.buffers()):
            state.retype(tensor, dtype)
        return self

    def float(self) -> Self:
        """Parameters and float buffers as float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Parameters and float buffers as float64."""
        return self.to(dtypes.float64)

    def bfloat16(self) -> Self:
        """Parameters and float buffers as bfloat16."""
        return self.to(dtypes.bfloat16)

    # -- showing -------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The options, as repr has them between its brackets: by default as `_repr_format` says."""
        return self._repr_format.format(self)

    def __repr__(self) -> str:
        rows = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        options = self.extra_repr()
        name = type(self).__name__
        if not rows:
            return f"{name}({options})"
        return f"{name}(\n  " + "\n  ".join([*([options] if options else []), *rows]) + "\n)"


watched(Module)
