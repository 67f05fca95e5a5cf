"""What modules do to the tensors they own: load, retype, move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.engine import recording
from gradcli.engine.array import copy_into
from gradcli.engine.device.place import Device
from gradcli.engine.dtype import DType
from gradcli.engine.tensor import Tensor
from gradcli.engine.transfer import to_device
from gradcli.errors import DTypeError, ShapeError


class IncompatibleKeys(NamedTuple):
    """What a load that was not strict left out."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load(
    owner: str, own: Mapping[str, Tensor], given: Mapping[str, Tensor], strict: bool
) -> IncompatibleKeys:
    """Copy `given` over `own` by name, after comparing all names and shapes."""
    if not isinstance(given, Mapping):
        found = type(given).__name__
        raise DTypeError(f"load_state_dict: takes a dict of Tensors by name, got {found}")
    for name, tensor in given.items():
        if not isinstance(tensor, Tensor):
            found = type(tensor).__name__
            raise DTypeError(f"load_state_dict: '{name}' must be a Tensor, got {found}")
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    wrong = [
        f"{name}: got {given[name].shape}, the module has {tensor.shape}"
        for name, tensor in own.items()
        if name in given and given[name].shape != tensor.shape
    ]
    if wrong or (strict and (missing or unexpected)):
        raise ShapeError(
            f"load_state_dict: the state does not fit {owner}; nothing was loaded. "
            f"missing: {_listed(missing)}; unexpected: {_listed(unexpected)}; "
            f"of another shape: {_listed(wrong)}"
        )
    for name, tensor in own.items():
        if name in given:
            copy_into(tensor.array, given[name].array)
    return IncompatibleKeys(missing, unexpected)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def retype(tensor: Tensor, dtype: DType) -> None:
    """Give a float tensor, and its gradient, another element type; the object stays."""
    if not tensor.is_floating_point() or tensor.dtype is dtype:
        return
    tensor.array = tensor.array.cast(dtype)
    recording.invalidate()
    if tensor.leaf is not None and tensor.leaf.grad is not None:
        tensor.leaf.grad = tensor.leaf.grad.cast(dtype)


def move(tensor: Tensor, there: Device | None) -> None:
    """Give a tensor, and its gradient, memory on another device; the object stays."""
    tensor.array = to_device(tensor.array, there)
    recording.invalidate()
    if tensor.leaf is not None and tensor.leaf.grad is not None:
        tensor.leaf.grad = to_device(tensor.leaf.grad, there)
