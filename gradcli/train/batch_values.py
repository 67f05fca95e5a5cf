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
    """Its form as JSON, then the bytes of its tensors."""
    tensors: list[Any] = []
    form = json.dumps(_form(value, tensors)).encode()
    return b"".join([_LENGTH.pack(len(form)), form, *map(_bytes, tensors)])


def _form(value: Any, tensors: list[Any]) -> Any:
    """Dicts as they are, a list for a tensor: its type and shape; other values by themselves."""
    if isinstance(value, dict):
        return {key: _form(one, tensors) for key, one in value.items()}
    if not isinstance(value, engine.Tensor):
        return value
    tensors.append(value.to("cpu"))
    return [value.dtype.name, list(value.shape)]


def _bytes(tensor: Any) -> bytes:
    data: memoryview = tensor.detach().contiguous().memoryview()
    return data.tobytes()


def unpack(data: bytes) -> Any:
    """What `pack` made bytes of."""
    begin = _LENGTH.size
    end = begin + _LENGTH.unpack_from(data)[0]
    return _fill(json.loads(data[begin:end]), memoryview(data)[end:])[0]


def _fill(form: Any, data: memoryview) -> tuple[Any, memoryview]:
    """The value of a form, and the bytes behind it."""
    if isinstance(form, dict):
        values = {}
        for key, one in form.items():
            values[key], data = _fill(one, data)
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
    """One of several: row i is row i // n of value i mod n, as far as that has so many."""
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
