"""docs/api.md: the public names in groups, each with its arguments and its meaning."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

_HEAD = """\
# Python API

Every public name by group. Names and arguments are PyTorch's wherever PyTorch has them
([differences.md](differences.md) lists what differs). The ops, which are functions of
`gradcli.engine` and mostly methods of `Tensor`, are in [ops.md](ops.md). `help(NAME)` in Python
shows a whole description.

`gradcli ops --markdown api > docs/api.md` writes this page; CI fails if it is out of date.
"""
# A heading, the module and what is imported from it: all of `__all__` where nothing is listed.
_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Runs and trained models": ("gradcli", ()),
    "Tensors": ("gradcli.engine.tensor", ("Tensor",)),
    "Engine": ("gradcli.engine", ()),
    "Gradients": ("gradcli.engine.autograd", ()),
    "Layers": ("gradcli.engine.nn", ()),
    "Initial weights": ("gradcli.engine.nn.init", ()),
    "Optimizers": ("gradcli.engine.optim", ()),
    "Learning-rate schedules": ("gradcli.engine.optim.lr_scheduler", ()),
    "Data loaders": ("gradcli.data.loader", ()),
    "Training on several ranks": ("gradcli.train.accelerator", ("Accelerator",)),
    "Ranks": ("gradcli.engine.distributed", ()),
    "Errors": ("gradcli.errors", ()),
}
_METHODS_OF = ("Tensor", "TrainedModel", "Accelerator", "Module", "Optimizer", "Generator")


def markdown() -> str:
    """The page."""
    from gradcli.engine.table import OPS

    parts = [_HEAD]
    for title, (name, names) in _GROUPS.items():
        module = import_module(name)
        parts.append(f"\n## {title}\n\n`{name}`\n\n| Name | Meaning |\n|---|---|\n")
        for key, value in _members(module, names or _public(module), OPS).items():
            parts += _rows(key, value, OPS)
    return "".join(parts)


def _public(module: Any) -> tuple[str, ...]:
    """The names of `__all__`, or those that the module itself defines."""
    if hasattr(module, "__all__"):
        return tuple(module.__all__)
    own = (key for key, value in vars(module).items() if _module_of(value) == module.__name__)
    return tuple(key for key in own if not key.startswith("_"))


def _module_of(value: Any) -> str | None:
    return getattr(value, "__module__", None) if callable(value) else None


def _members(module: Any, names: tuple[str, ...], ops: Mapping[str, Any]) -> dict[str, Any]:
    """Functions and classes by name; the ops have a page of their own."""
    elsewhere = {"Tensor", *ops} if module.__name__ == "gradcli.engine" else set()
    values = {name: getattr(module, name) for name in sorted(set(names) - elsewhere)}
    return {name: value for name, value in values.items() if callable(value)}


def _rows(key: str, value: Any, ops: Mapping[str, Any]) -> Iterator[str]:
    yield _row(key, value)
    if key in _METHODS_OF:
        for name, method in sorted(vars(value).items()):
            internal = name.startswith("_") or inspect.ismemberdescriptor(method)
            if not internal and not (key == "Tensor" and name in ops):
                yield _row(f"{key}.{name}", method)


def _row(name: str, value: Any) -> str:
    value = getattr(value, "__func__", value)
    meaning = (inspect.getdoc(value) or "").split("\n", 1)[0]
    cell = f"{name}{_signature(value)}" if name != "Tensor" else name  # engine.tensor makes it
    cell = cell.replace("|", "\\|")
    return f"| `{cell}` | {meaning.replace('|', chr(92) + '|')} |\n"


def _signature(value: Any) -> str:
    """The arguments without their types: what a call may write."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    callers = [each for each in bare if each.name != "self"]
    return str(inspect.Signature(callers))
