"""Launches of sort and searchsorted."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    CallSpec,
    Plan,
    TensorArg,
    launch,
    launches,
    over,
    single_launch,
    tensors,
)
from gradcli.engine.device.gpu.sorting import FAMILY as _SORTING
from gradcli.engine.device.gpu.sorting import sort as sorted_rows

FAMILY = _SORTING


@launches("sort")
def sort(call: CallSpec) -> Plan:
    """Rows of keys and places put in order, then the first k of each; sizes[0]: descending."""
    (rows, n), k = call.tensors[0].shape, call.tensors[1].shape[1]
    if not rows * k:
        return Plan()
    suffix = SUFFIX[call.tensors[0].dtype.name]
    order = sorted_rows(TensorArg(0), suffix, rows, n, 0, call.size(0) != 0)
    args = TensorArg(0), order.places, *tensors(1, 2), rows * k, n, k
    last = launch(FAMILY, "sort_write", suffix, over(rows * k), *args)
    return Plan((*order.launches, last), order.end)


@launches("searchsorted")
def searchsorted(call: CallSpec) -> Plan:
    """One pass over what is looked for; sizes[0]: behind equal ones."""
    count, (rows, n) = call.numel(1), call.tensors[0].shape
    flags = int(rows == 1), int(call.size(0) != 0)
    args = count, n, max(1, call.tensors[1].shape[1]), *flags
    return single_launch(FAMILY, call, over(count), *tensors(0, 1, 2), *args)
