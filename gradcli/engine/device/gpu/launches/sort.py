"""Launches of sort and searchsorted."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Plan,
    Shapes,
    Tensor,
    first,
    launches,
    one,
    over,
    step,
)
from gradcli.engine.device.gpu.sorting import FAMILY as _SORTING
from gradcli.engine.device.gpu.sorting import sort as sorted_rows

FAMILY = _SORTING


@launches("sort")
def sort(call: Shapes) -> Plan:
    """Rows of keys and places put in order, then the first k of each; sizes[0]: descending."""
    (rows, n), k = call.tensors[0].shape, call.tensors[1].shape[1]
    if not rows * k:
        return Plan()
    suffix = SUFFIX[call.tensors[0].dtype.name]
    found = sorted_rows(Tensor(0), suffix, rows, n, 0, call.size(0) != 0)
    args = Tensor(0), found.places, Tensor(1), Tensor(2), rows * k, n, k
    last = step(FAMILY, "sort_write", suffix, over(rows * k), *args)
    return Plan((*found.launches, last), found.end)


@launches("searchsorted")
def searchsorted(call: Shapes) -> Plan:
    """One pass over what is looked for; sizes[0]: behind equal ones."""
    count, (rows, n) = call.numel(1), call.tensors[0].shape
    flags = int(rows == 1), int(call.size(0) != 0)
    args = count, n, max(1, call.tensors[1].shape[1]), *flags
    return one(FAMILY, call, over(count), *first(3), *args)
