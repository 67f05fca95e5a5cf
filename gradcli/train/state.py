"""Between the engine's tensors and a checkpoint's bytes: weights, optimizer state, hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine.dtype import DTYPES
from gradcli.engine.origins import count_nonfinite, finite
from gradcli.errors import CheckpointError
from gradcli.train.safetensors_file import Stored
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn, optim
    from gradcli.train.average import Average

MODEL, OPTIMIZER, AVERAGE = "model.", "optim.", "ema."

# safetensors' names for the engine's dtypes.
NAMES = {
    "float32": "F32",
    "float64": "F64",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
    "bfloat16": "BF16",
}

ENGINE_DTYPES = {letters: DTYPES[name] for name, letters in NAMES.items()}
_HALF = NAMES["bfloat16"]


def dtype_name(tensor: Tensor) -> str:
    """`F32` for a float32 tensor."""
    return NAMES[tensor.dtype.name]


def bytes_of(tensor: Tensor) -> memoryview:
    """The elements in row-major order; no copy when the tensor is contiguous."""
    data: memoryview = tensor.detach().contiguous().memoryview()
    return data.cast("B")


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return dict(model.state_dict())


def tensors_of(
    model: nn.Module, optimizer: optim.Optimizer, average: Average | None = None
) -> dict[str, Stored]:
    """Everything a checkpoint stores, as views of the tensors' bytes."""
    return {
        name: Stored(dtype_name(tensor), tuple(tensor.shape), bytes_of(tensor))
        for name, tensor in all_tensors(model, optimizer, average).items()
    }


def all_tensors(
    model: nn.Module, optimizer: optim.Optimizer | None, average: Average | None = None
) -> dict[str, Tensor]:
    """All that a checkpoint stores, by its names there."""
    named = {MODEL + name: tensor for name, tensor in weights(model).items()}
    if optimizer is not None:
        state = optimizer.state_tensors()
        named.update({OPTIMIZER + name: tensor for name, tensor in state.items()})
    if average is not None:
        named.update({AVERAGE + name: tensor for name, tensor in average.tensors.items()})
    return named


def as_evaluated(stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The model's own tensors, with the averages of weights instead where there are any."""
    named = {name: one for name, one in stored.items() if name.startswith(MODEL)}
    for name, one in stored.items():
        if name.startswith(AVERAGE):
            named[MODEL + name.removeprefix(AVERAGE)] = one
    return named


def restore(
    stored: Mapping[str, Stored],
    model: nn.Module,
    optimizer: optim.Optimizer | None,
    source: str,
    average: Average | None = None,
    *,
    partial: bool = False,
) -> list[str]:
    """Copy a checkpoint into the model, the optimizer and the average of the weights.

    Without an optimizer the model is to be used: it gets the averages, where there are any.

    Everything is compared before anything is copied. Where they differ, a list of all that is
    missing, left over and of another shape or dtype is raised; with `partial` what fits is copied
    and the list is given back.
    """
    wanted = all_tensors(model, optimizer, average)
    if optimizer is None:
        stored = as_evaluated(stored)
    fault = differences(stored, wanted, source)
    if fault is not None and not partial:
        raise fault
    with engine.no_grad():
        for name, tensor in wanted.items():
            if name in stored and _fits(stored[name], tensor):
                tensor.copy_(as_tensor(stored[name]))
    return [] if fault is None else [fault.message, *fault.notes]


def readable(stored: Stored, tensor: Tensor) -> bool:
    """Whether weights from elsewhere are of the tensor's type, or rounded to bfloat16."""
    return stored.dtype in (dtype_name(tensor), *([_HALF] if tensor.is_floating_point() else []))


def as_tensor(stored: Stored) -> Tensor:
    """Stored bytes as a tensor of the stored shape and type, on the CPU, in memory of its own."""
    dtype = ENGINE_DTYPES[stored.dtype]
    if not len(stored.data):
        return engine.zeros(stored.shape, dtype=dtype, device="cpu")
    flat = engine.frombuffer(bytearray(stored.data), dtype=dtype)
    return flat.reshape(stored.shape)


def differences(
    stored: Mapping[str, Stored], wanted: Mapping[str, Tensor], source: str
) -> CheckpointError | None:
    """What keeps the stored tensors from being the wanted ones, if anything does."""
    missing = [
        f"missing: {name} {_wanted(one)}" for name, one in wanted.items() if name not in stored
    ]
    extra = [
        f"not in the model: {name} {one.dtype}{list(one.shape)}"
        for name, one in stored.items()
        if name not in wanted
    ]
    other = [
        f"{name}: the checkpoint has {stored[name].dtype}{list(stored[name].shape)}, "
        f"the model {_wanted(one)}"
        for name, one in wanted.items()
        if name in stored and not _fits(stored[name], one)
    ]
    if not (missing or extra or other):
        return None
    return CheckpointError(
        f"{source} does not fit the model: {quantity(len(missing), 'tensor')} missing, "
        f"{len(extra)} left over, {len(other)} of another shape or dtype",
        code="E704",
        notes=(*missing, *extra, *other),
    )


def _fits(stored: Stored, tensor: Tensor) -> bool:
    return (stored.dtype, stored.shape) == (dtype_name(tensor), tuple(tensor.shape))


def _wanted(tensor: Tensor) -> str:
    return f"{dtype_name(tensor)}{list(tensor.shape)}"


def weights_sha256(model: nn.Module) -> str:
    """sha256 over name, dtype, shape and little-endian bytes of each weight, names sorted."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights(model).items()):
        digest.update(f"{name}\0{dtype_name(tensor)}\0{list(tensor.shape)}\0".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()


def nonfinite_weights(model: nn.Module) -> dict[str, int]:
    """The weights that hold NaN or infinity, and how many."""
    return {
        name: count_nonfinite(tensor.array)
        for name, tensor in weights(model).items()
        if not finite(tensor.array)
    }
