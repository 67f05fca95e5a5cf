"""Tensors between ranks. A step that calls this is not captured: it lets others look at values."""

from __future__ import annotations

from gradcli.engine.distributed.group import Group, other_rank
from gradcli.engine.distributed.sum import Sum
from gradcli.engine.dtype import DTYPES
from gradcli.engine.ops.creation.creation import frombuffer
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


def broadcast_(group: Group, tensor: Tensor, source: int) -> Tensor:
    """Overwrite a tensor with that of rank `source`; returns it."""
    here = _copy(tensor)
    data = here.memoryview()
    _agree(group, tensor, "broadcast_")
    group.broadcast_into(data, "a broadcast", source)
    return _overwrite(tensor, here)


def all_reduce_(group: Group, tensor: Tensor) -> Tensor:
    """Overwrite a tensor with the sum of all ranks' tensors, along the tree of ranks."""
    data = _copy(tensor).memoryview()
    _agree(group, tensor, "all_reduce_")
    total = Sum(group.size, tensor.numel(), tensor.dtype, group=group)
    total.source.memoryview()[:] = data
    total.sum()
    return _overwrite(tensor, total.out)


def all_gather(group: Group, tensor: Tensor) -> list[Tensor]:
    """The tensors of all ranks, in order of ranks."""
    data = bytes(_copy(tensor).memoryview())
    kinds = group.all_gather(_kind(tensor), "a gathering")
    rows = zip(kinds, group.all_gather(data, "a gathering"), strict=True)
    return [_tensor(kind, numbers).to(tensor.device) for kind, numbers in rows]


def _copy(tensor: Tensor) -> Tensor:
    """The same numbers in memory of the CPU, in a row."""
    return tensor.detach().cpu().clone().reshape(-1)


def _overwrite(tensor: Tensor, numbers: Tensor) -> Tensor:
    tensor.detach().copy_(numbers.reshape(tensor.shape).to(tensor.device))
    return tensor


def _kind(tensor: Tensor) -> bytes:
    return " ".join([tensor.dtype.name, *map(str, tensor.shape)]).encode()


def _tensor(kind: bytes, data: bytes) -> Tensor:
    name, *shape = kind.decode().split()
    return frombuffer(bytearray(data), dtype=DTYPES[name]).reshape(tuple(map(int, shape)))


def _agree(group: Group, tensor: Tensor, op: str) -> None:
    """Refuse tensors of several shapes before their bytes meet."""
    kinds = [kind.decode() for kind in group.all_gather(_kind(tensor), op)]
    shapes = [f"{name} {tuple(map(int, sizes))}" for name, *sizes in map(str.split, kinds)]
    rank = other_rank(shapes)
    if rank:
        first, second = group.names[0], group.names[rank]
        raise ShapeError(f"{op}: {second} has {shapes[rank]}, {first} has {shapes[0]}")
