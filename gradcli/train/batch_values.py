"""What batches give: nested dicts of tensors, a row a batch, as bytes for other ranks."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from gradcli import engine
from gradcli.engine.dtype import DTYPES

_LENGTH = struct.Struct("<q")


def pack(value: Any) -> bytes:
    """The value's structure as JSON, then the bytes of its tensors."""
    tensors: list[Any] = []
    form = json.dumps(_form(value, tensors)).encode()
    return b"".join([_LENGTH.pack(len(form)), form, *map(_bytes, tensors)])


def _form(value: Any, tensors: list[Any]) -> Any:
    """Dicts stay dicts, a tensor becomes the list of its dtype and shape; other values stay."""
    if isinstance(value, dict):
        return {key: _form(item, tensors) for key, item in value.items()}
    if not isinstance(value, engine.Tensor):
        return value
    tensors.append(value.to("cpu"))
    return [value.dtype.name, list(value.shape)]


def _bytes(tensor: Any) -> bytes:
    data: memoryview = tensor.detach().contiguous().memoryview()
    return data.tobytes()


def unpack(data: bytes) -> Any:
    """The value that `pack` encoded."""
    begin = _LENGTH.size
    end = begin + _LENGTH.unpack_from(data)[0]
    return _fill(json.loads(data[begin:end]), memoryview(data)[end:])[0]


def _fill(form: Any, data: memoryview) -> tuple[Any, memoryview]:
    """The value of a structure, and the bytes after its tensors."""
    if isinstance(form, dict):
        values = {}
        for key, item in form.items():
            values[key], data = _fill(item, data)
        return values, data
    if not isinstance(form, list):
        return form, data
    dtype, shape = DTYPES[form[0]], form[1]
    out = engine.empty(shape, dtype=dtype, device="cpu")
    nbytes = out.numel() * dtype.size
    if nbytes:
        flat = engine.frombuffer(bytearray(data[:nbytes]), dtype=dtype)
        out = flat.reshape(shape)
    return out, data[nbytes:]


def interleave(values: Sequence[Any]) -> Any:
    """Merge n values: row i is row i // n of value i mod n."""
    first = values[0]
    if isinstance(first, dict):
        return {key: interleave([value[key] for value in values]) for key in first}
    if not isinstance(first, engine.Tensor):
        return first
    rows = sum(value.shape[0] for value in values)
    out = engine.empty(rows, *first.shape[1:], dtype=first.dtype, device="cpu")
    for i, value in enumerate(values):
        out[i :: len(values)].copy_(value)
    return out
