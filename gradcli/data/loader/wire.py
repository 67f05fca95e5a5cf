"""Batches between processes: tensors as raw bytes beside a message that only says where they go."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.engine.dtype import DTYPES


@dataclass(frozen=True)
class TensorHeader:
    """Where tensor number `index` of a message belongs."""

    index: int
    shape: tuple[int, ...]
    dtype: str


def send(connection: Connection, tag: object, value: object) -> None:
    """Send `tag` and a value, then the bytes of its tensors, straight from their memory."""
    tensors: list[Tensor] = []

    def take(leaf: object) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        tensors.append(leaf.detach().contiguous())
        return TensorHeader(len(tensors) - 1, leaf.shape, leaf.dtype.name)

    connection.send((tag, _mapped(value, take)))
    for tensor in tensors:
        if tensor.numel():
            connection.send_bytes(tensor.memoryview())


def receive(connection: Connection) -> tuple[Any, Any]:
    """Receive what `send` sent; bytes go straight into the memory of new tensors."""
    tag, skeleton = connection.recv()

    def fill(leaf: object) -> Any:
        if not isinstance(leaf, TensorHeader):
            return leaf
        tensor = engine.empty(*leaf.shape, dtype=DTYPES[leaf.dtype])
        if tensor.numel():
            connection.recv_bytes_into(tensor.memoryview())
        return tensor

    return tag, _mapped(skeleton, fill)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with its leaves changed, in the order in which they stand."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(each, change) for each in value))
    if type(value) in (list, tuple):
        return type(value)(_mapped(each, change) for each in value)
    if type(value) is dict:
        return {key: _mapped(each, change) for key, each in value.items()}
    return change(value)


def _parts(tensor: Tensor) -> tuple[Any, ...]:
    """How a tensor inside a dataset reaches a worker: multiprocessing's messages alone know it."""
    plain = tensor.detach().contiguous()
    return _whole, (bytes(plain.memoryview()), tensor.shape, tensor.dtype.name)


def _whole(data: bytes, shape: tuple[int, ...], dtype: str) -> Tensor:
    tensor = engine.empty(*shape, dtype=DTYPES[dtype])
    tensor.memoryview()[:] = data
    return tensor


ForkingPickler.register(Tensor, _parts)
