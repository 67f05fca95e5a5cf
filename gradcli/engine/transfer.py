"""Elements taken from one device to another."""

from __future__ import annotations

from gradcli.engine import recording
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import meta, scope
from gradcli.errors import DTypeError


def to_device(array: Array, device: scope.Device | None) -> Array:
    """The elements on another device, contiguous; the array itself if they lie there."""
    here = array.storage.device
    if here is device or (device is None and here is meta.DEVICE and meta.DEVICE.blank):
        return array  # in a rehearsal what is imagined is the CPU's
    if device is not None and array.dtype.name == "float64" and not device.has_float64:
        raise DTypeError(
            f"to: float64 is for the CPU, {device.name} computes in float32; use x.float() first"
        )
    with scope.on(here):
        source = array.contiguous()
    with scope.on(device):
        out = empty(array.shape, array.dtype)
    if recording.current() is not None and here is None:
        run("copy", source, out)  # so that a replay moves it as well
        return out
    data = source.memoryview()
    if device is not None:
        device.write(out.storage, 0, data)
    else:
        out.memoryview()[:] = data
    return out
