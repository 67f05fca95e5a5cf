"""The devices beside the CPU, by name; each is opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli.errors import DeviceError, OptionError

if TYPE_CHECKING:  # who computes on the CPU does not wait for these
    from gradcli.engine.device.gpu.device import GPU
    from gradcli.engine.device.gpu.driver import Driver


def _cuda() -> Driver:
    from gradcli.engine.device.gpu.installed import why_not_cuda

    reason = why_not_cuda()
    if reason:
        raise DeviceError(f"device 'cuda' cannot be used: {reason}")
    from gradcli.engine.device.gpu.cuda import Cuda

    return Cuda()


def _metal() -> Driver:
    from gradcli.engine.device.gpu.installed import why_not_metal

    reason = why_not_metal()
    if reason:
        raise DeviceError(f"device 'metal' cannot be used: {reason}")
    from gradcli.engine.device.gpu.metal import Metal

    return Metal()


DRIVERS: dict[str, Callable[[], Driver]] = {"cuda": _cuda, "metal": _metal}
_open: dict[str, GPU] = {}


def device(name: str, op: str = "to") -> GPU | None:
    """The device of this name, opened; None for the CPU."""
    kind = name.partition(":")[0]
    if kind == "cpu":
        return None
    if kind not in DRIVERS:
        raise OptionError(f"{op}: no device '{name:.60}'; there are cpu, {', '.join(DRIVERS)}")
    if kind not in _open:
        from gradcli.engine.device.gpu.device import GPU

        _open[kind] = GPU(DRIVERS[kind]())
    return _open[kind]
