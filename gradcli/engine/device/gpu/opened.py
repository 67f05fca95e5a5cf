"""The devices beside the CPU, by name; each is opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from gradcli.devices import name_of, parsed
from gradcli.errors import DeviceError

if TYPE_CHECKING:  # who computes on the CPU does not wait for these
    from gradcli.engine.device.gpu.device import GPU
    from gradcli.engine.device.gpu.driver import Driver


def _cuda(index: int) -> Driver:
    from gradcli.engine.device.gpu.installed import cuda_unavailable_reason

    _usable(name_of("cuda", index), cuda_unavailable_reason(index))
    from gradcli.engine.device.gpu.cuda import Cuda

    return Cuda(index)


def _metal(index: int) -> Driver:
    from gradcli.engine.device.gpu.installed import metal_unavailable_reason

    _usable(name_of("metal", index), metal_unavailable_reason(index))
    from gradcli.engine.device.gpu.metal import Metal

    return Metal()


def _usable(name: str, reason: str) -> None:
    if reason:
        raise DeviceError(f"device '{name}' cannot be used: {reason}")


DRIVERS: dict[str, Callable[[int], Driver]] = {"cuda": _cuda, "metal": _metal}
_open: dict[str, GPU] = {}
_opening = Lock()  # no thread opens what another one is opening


def device(name: str, op: str = "to") -> GPU | None:
    """The device of this name, opened; None for the CPU."""
    kind, index = parsed(name, op)
    if kind == "cpu":
        return None
    name = name_of(kind, index)
    with _opening:
        if name not in _open:
            from gradcli.engine.device.gpu.device import GPU

            _open[name] = GPU(DRIVERS[kind](index))
        return _open[name]
