"""Launches of images read at places of their own."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors


@launches("affine")
def affine(call: Draft) -> None:
    """One pass over what is written."""
    count, (_, channels, height, width) = call.numel(), call.tensors[0].shape
    call.launch("affine", over(count), *tensors(0, 1, 2), count, channels, height, width)
