"""The way between GPUs of ranks: NCCL where all of them have it, else the host's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli.engine.device.gpu import opened
from gradcli.engine.distributed.group import Group
from gradcli.errors import DeviceError

if TYPE_CHECKING:
    from gradcli.engine.distributed.nccl import Communicator

_WHAT = "the choice of the way between GPUs"
_ways: WeakKeyDictionary[Group, dict[str, Communicator | None]] = WeakKeyDictionary()


def communicator(group: Group, device: str) -> Communicator | None:
    """Of the ranks' GPUs, the same each time; all ranks have to ask, with tensors on the device.

    None on every rank where one of them is not on CUDA, lacks NCCL, or has another version of it,
    or where NCCL refuses: it does so where two ranks share a GPU.
    """
    ways = _ways.setdefault(group, {})
    if device not in ways:
        ways[device] = (
            _meet(group, device) if group.size > 1 and device.startswith("cuda") else None
        )
    return ways[device]


def _meet(group: Group, device: str) -> Communicator | None:
    from gradcli.engine.distributed import nccl  # nobody without several GPUs waits for it

    try:
        version = nccl.version()
    except DeviceError:
        version = ""
    versions = set(group.all_gather(version.encode(), _WHAT))
    if len(versions) > 1 or b"" in versions:
        return None
    try:
        own = nccl.Communicator(group)
    except DeviceError:
        own = None
    all_have = all(group.all_gather(b"1" if own else b"", _WHAT))
    if own is None or not all_have:
        return None
    gpu: Any = opened.device(device)
    gpu.driver.patience = own.wait
    return own
