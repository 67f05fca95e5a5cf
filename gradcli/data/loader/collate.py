"""How samples become a batch, by torch's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import engine
from gradcli.data.loader.sets import StackedSamples
from gradcli.engine import Tensor
from gradcli.errors import DTypeError, ShapeError


def default_collate(batch: Sequence[Any]) -> Any:
    """Tensors and arrays are stacked, numbers become a tensor, containers are gone through.

    Floats give float64 and whole numbers int64, as in torch; text stays as it is.
    """
    if isinstance(batch, StackedSamples):
        return list(batch.tensors)
    first = batch[0]
    if isinstance(first, Tensor) or hasattr(first, "__array_interface__"):
        return _stacked([_tensor(each) for each in batch])
    if isinstance(first, int | float):
        return engine.tensor(list(batch), dtype=engine.float64 if type(first) is float else None)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([each[key] for each in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*_transposed(batch))
    if isinstance(first, tuple | list):
        return _transposed(batch)
    raise DTypeError(
        "default_collate: takes tensors, arrays, numbers, text, lists, tuples and dicts, got "
        f"{type(first).__name__}; give DataLoader a collate_fn"
    )


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """`engine.stack` of data: copies the bytes of each tensor behind those of the last."""
    first = tensors[0]
    kinds = {(each.shape, each.dtype.name) for each in tensors}
    if len(kinds) > 1:
        raise ShapeError(
            "default_collate: tensors of one batch must have one shape and type, got "
            + ", ".join(f"{name} {shape}" for shape, name in sorted(kinds))
        )
    batch = engine.empty(len(tensors), *first.shape, dtype=first.dtype)
    if batch.numel():
        memory = batch.memoryview()
        size = len(memory) // len(tensors)
        for i, each in enumerate(tensors):
            memory[i * size : (i + 1) * size] = each.detach().contiguous().memoryview()
    return batch


def _transposed(batch: Sequence[Any]) -> list[Any]:
    lengths = {len(each) for each in batch}
    if len(lengths) != 1:
        raise ShapeError(f"default_collate: samples of {sorted(lengths)} parts in one batch")
    return [default_collate(parts) for parts in zip(*batch, strict=True)]


def _tensor(value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return engine.from_numpy(value) if hasattr(value, "flags") else engine.tensor(value)


def default_convert(data: object) -> Any:
    """A sample as it is, arrays as tensors: what `batch_size=None` gives."""
    if hasattr(data, "__array_interface__") and not isinstance(data, Tensor):
        return _tensor(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple | list):
        return [default_convert(value) for value in data]
    return data
