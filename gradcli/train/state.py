"""Convert between the engine's tensors and a checkpoint's bytes: weights, optimizer state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine.dtype import DTYPES
from gradcli.engine.origins import count_nonfinite, finite
from gradcli.errors import CheckpointError
from gradcli.train.safetensors_file import RawTensor
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
) -> dict[str, RawTensor]:
    """Everything a checkpoint stores, as views of the tensors' bytes."""
    return {
        name: RawTensor(dtype_name(tensor), tuple(tensor.shape), bytes_of(tensor))
        for name, tensor in all_tensors(model, optimizer, average).items()
    }


def all_tensors(
    model: nn.Module, optimizer: optim.Optimizer | None, average: Average | None = None
) -> dict[str, Tensor]:
    """All tensors that a checkpoint stores, by their names there."""
    tensors = {MODEL + name: tensor for name, tensor in weights(model).items()}
    if optimizer is not None:
        state = optimizer.state_tensors()
        tensors.update({OPTIMIZER + name: tensor for name, tensor in state.items()})
    if average is not None:
        tensors.update({AVERAGE + name: tensor for name, tensor in average.tensors.items()})
    return tensors


def as_evaluated(saved: Mapping[str, RawTensor]) -> dict[str, RawTensor]:
    """The model's tensors, with averages in place of averaged weights."""
    tensors = {name: tensor for name, tensor in saved.items() if name.startswith(MODEL)}
    for name, tensor in saved.items():
        if name.startswith(AVERAGE):
            tensors[MODEL + name.removeprefix(AVERAGE)] = tensor
    return tensors


def restore(
    saved: Mapping[str, RawTensor],
    model: nn.Module,
    optimizer: optim.Optimizer | None,
    source: str,
    average: Average | None = None,
    *,
    partial: bool = False,
) -> list[str]:
    """Copy a checkpoint into the model, the optimizer and the average of the weights.

    Without an optimizer, for evaluation, the model gets the averages if there are any.

    Everything is compared before anything is copied. If they differ, the error lists all that is
    missing, left over and of another shape or dtype; with `partial` it copies what fits and returns
    the list.
    """
    tensors = all_tensors(model, optimizer, average)
    if optimizer is None:
        saved = as_evaluated(saved)
    fault = differences(saved, tensors, source)
    if fault is not None and not partial:
        raise fault
    with engine.no_grad():
        for name, tensor in tensors.items():
            if name in saved and _fits(saved[name], tensor):
                tensor.copy_(as_tensor(saved[name]))
    return [] if fault is None else [fault.message, *fault.notes]


def readable(saved: RawTensor, tensor: Tensor) -> bool:
    """Whether saved weights have the tensor's type, or are its values in bfloat16."""
    return saved.dtype in (dtype_name(tensor), *([_HALF] if tensor.is_floating_point() else []))


def as_tensor(raw: RawTensor) -> Tensor:
    """A tensor with the bytes, shape and type of `raw`, on the CPU, in its own memory."""
    dtype = ENGINE_DTYPES[raw.dtype]
    if not len(raw.data):
        return engine.zeros(raw.shape, dtype=dtype, device="cpu")
    flat = engine.frombuffer(bytearray(raw.data), dtype=dtype)
    return flat.reshape(raw.shape)


def differences(
    saved: Mapping[str, RawTensor], expected: Mapping[str, Tensor], source: str
) -> CheckpointError | None:
    """The error that lists how the saved tensors differ from the expected ones, if they do."""
    missing = [
        f"missing: {name} {_format(tensor)}"
        for name, tensor in expected.items()
        if name not in saved
    ]
    extra = [
        f"not in the model: {name} {tensor.dtype}{list(tensor.shape)}"
        for name, tensor in saved.items()
        if name not in expected
    ]
    mismatched = [
        f"{name}: the checkpoint has {saved[name].dtype}{list(saved[name].shape)}, "
        f"the model {_format(tensor)}"
        for name, tensor in expected.items()
        if name in saved and not _fits(saved[name], tensor)
    ]
    if not (missing or extra or mismatched):
        return None
    return CheckpointError(
        f"{source} does not fit the model: {quantity(len(missing), 'tensor')} missing, "
        f"{len(extra)} left over, {len(mismatched)} of another shape or dtype",
        code="E704",
        notes=(*missing, *extra, *mismatched),
    )


def _fits(saved: RawTensor, tensor: Tensor) -> bool:
    return (saved.dtype, saved.shape) == (dtype_name(tensor), tuple(tensor.shape))


def _format(tensor: Tensor) -> str:
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
