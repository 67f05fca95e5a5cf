"""Launches of sort and searchsorted."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, TensorArg, launches, over, tensors
from gradcli.engine.device.gpu.sorting import sort as sort_rows


@launches("sort")
def sort(call: Draft) -> None:
    """Rows of keys and indices sorted, then the first k of each; sizes[0]: descending."""
    (rows, n), k = call.tensors[0].shape, call.tensors[1].shape[1]
    if not k:
        return
    _, indices = sort_rows(call, TensorArg(0), rows, n, descending=call.size(0) != 0)
    args = *tensors(0), indices, *tensors(1, 2), rows * k, n, k
    call.launch("sort_write", over(rows * k), *args)


@launches("searchsorted")
def searchsorted(call: Draft) -> None:
    """One pass over what is looked for; sizes[0]: behind equal ones."""
    count, (rows, n) = call.numel(1), call.tensors[0].shape
    columns = max(1, call.tensors[1].shape[1])
    args = count, n, columns, rows == 1, call.size(0) != 0
    call.launch("searchsorted", over(count), *tensors(0, 1, 2), *args)
