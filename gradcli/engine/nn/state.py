"""What modules do to the tensors they own: load, retype, move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.engine import recording
from gradcli.engine.array import copy_into
from gradcli.engine.device.scope import Device
from gradcli.engine.dtype import DType
from gradcli.engine.tensor import Tensor
from gradcli.engine.transfer import to_device
from gradcli.errors import DTypeError, ShapeError


class IncompatibleKeys(NamedTuple):
    """What a load that was not strict left out."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load(
    owner: str, own: Mapping[str, Tensor], state: Mapping[str, Tensor], strict: bool
) -> IncompatibleKeys:
    """Copy `state` over `own` by name, after comparing all names and shapes."""
    if not isinstance(state, Mapping):
        kind = type(state).__name__
        raise DTypeError(f"load_state_dict: takes a dict of Tensors by name, got {kind}")
    for name, tensor in state.items():
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise DTypeError(f"load_state_dict: '{name}' must be a Tensor, got {kind}")
    missing = [name for name in own if name not in state]
    unexpected = [name for name in state if name not in own]
    wrong = [
        f"{name}: got {state[name].shape}, the module has {tensor.shape}"
        for name, tensor in own.items()
        if name in state and state[name].shape != tensor.shape
    ]
    if wrong or (strict and (missing or unexpected)):
        raise ShapeError(
            f"load_state_dict: the state does not fit {owner}; nothing was loaded. "
            f"missing: {_join(missing)}; unexpected: {_join(unexpected)}; "
            f"of another shape: {_join(wrong)}"
        )
    for name, tensor in own.items():
        if name in state:
            copy_into(tensor.array, state[name].array)
    return IncompatibleKeys(missing, unexpected)


def _join(names: list[str]) -> str:
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
