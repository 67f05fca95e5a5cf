"""Launches of group norm: layer norm of the groups as rows, and weights of the channels."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors
from gradcli.engine.device.gpu.launches.norm import backward_lines, layer_norm
from gradcli.engine.device.gpu.launches.norm_batch import channels
from gradcli.engine.device.gpu.lines import parts
from gradcli.engine.dtype import DType, float32
from gradcli.engine.shape import Shape, contiguous_strides


class _Rows:
    """A tensor of a call seen in another shape."""

    dtype: DType = float32

    def __init__(self, *shape: int) -> None:
        self.shape: Shape = shape
        self.strides = contiguous_strides(shape)


def _groups(call: Draft, mean: int) -> tuple[int, int]:
    """How many groups there are, and the elements of each."""
    rows = call.numel(mean)
    return rows, call.numel() // rows if rows else 0


@launches("group_norm")
def group_norm(call: Draft) -> None:
    """Layer norm without weights, then one pass with those of the channels."""
    rows, n = _groups(call, 4)
    each, nothing = _Rows(rows), _Rows(0)
    shapes = (_Rows(rows, n), nothing, nothing, _Rows(rows, n), each, each)
    layer_norm(replace(call, tensors=shapes, family="norm"))  # adds to the same launches
    if call.has(1) or call.has(2):
        count, (_, sizes) = call.numel(), channels(call)
        args = *tensors(3, 1, 2), count, *sizes, call.has(1), call.has(2)
        call.launch("group_scale", over(count), *args)


@launches("group_norm_backward")
def group_norm_backward(call: Draft) -> None:
    """The gradient of x from grad * weight; those of the channels from parts of their sums."""
    rows, n = _groups(call, 2)
    count, (cut, sizes) = call.numel(), channels(call)
    (grad,) = tensors(1)
    if count and call.has(4):
        grad = call.scratch(4 * count)
        call.launch("group_weighted", over(count), *tensors(1, 4), grad, count, *sizes)
    if count:
        backward_lines(call, (*tensors(0), grad, *tensors(2, 3, 4, 5)), rows, n, weighted=False)
    back, sums = parts(cut), call.scratch(16 * cut.results * cut.chunks)
    width = cut.results // max(1, call.tensors[2].shape[1])
    args = *tensors(0, 1, 2, 3), sums, cut.packed, *sizes, width
    call.launch("group_slopes", cut.grid, *args)
    call.launch("group_gradients", back.grid, sums, *tensors(6, 7), back.packed)
