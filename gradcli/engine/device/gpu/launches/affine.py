"""Launches of images read at places of their own."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Plan, Shapes, first, launches, one, over

FAMILY = "affine"


@launches("affine")
def affine(call: Shapes) -> Plan:
    """One pass over what is written."""
    count, (_, channels, height, width) = call.numel(), call.tensors[0].shape
    return one(FAMILY, call, over(count), *first(3), count, channels, height, width)
