"""Launches of images read at places of their own."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import CallSpec, Plan, launches, over, single_launch, tensors

FAMILY = "affine"


@launches("affine")
def affine(call: CallSpec) -> Plan:
    """One pass over what is written."""
    count, (_, channels, height, width) = call.numel(), call.tensors[0].shape
    args = *tensors(0, 1, 2), count, channels, height, width
    return single_launch(FAMILY, call, over(count), *args)
