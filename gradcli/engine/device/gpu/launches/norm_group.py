"""Launches of group norm: layer norm of the groups as rows, and weights of the channels."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    tensors,
)
from gradcli.engine.device.gpu.launches.norm import layer_norm
from gradcli.engine.device.gpu.lines import lines_of, parts
from gradcli.engine.dtype import DType, float32
from gradcli.engine.shape import Shape, contiguous_strides

FAMILY = "norm_group"
_MOST = 1024  # threads of a block


class _Rows:
    """A tensor of a call seen in another shape."""

    dtype: DType = float32

    def __init__(self, *shape: int) -> None:
        self.shape: Shape = shape
        self.strides = contiguous_strides(shape)


@launches("group_norm")
def group_norm(call: CallSpec) -> Plan:
    """Layer norm without weights, then one pass with those of the channels."""
    rows, n = _groups(call, 4)
    kept, nothing = _Rows(rows), _Rows(0)
    every = (_Rows(rows, n), nothing, nothing, _Rows(rows, n), kept, kept)
    plan = layer_norm(replace(call, tensors=every))
    given = tuple(int(call.numel(i) > 0) for i in (1, 2))
    count = call.numel()
    if not count or not any(given):
        return plan
    args = *tensors(3, 1, 2), count, *_sizes(call), *given
    scale = launch(FAMILY, "group_scale", "f32", over(count), *args)
    return replace(plan, launches=(*plan.launches, scale))


@launches("group_norm_backward")
def group_norm_backward(call: CallSpec) -> Plan:
    """The gradient of x from grad * weight; those of the channels from parts of their sums."""
    rows, n = _groups(call, 2)
    samples, channels, length = call.tensors[0].shape
    if not channels:
        return Plan()
    count = call.numel()
    weighted = call.numel(4) > 0
    held = 4 * count if weighted else 0
    every: list[Launch] = []
    if count:
        every = _of_x(call, rows, n, weighted)
    cut = lines_of(channels, samples * length, channels if length == 1 else 1)
    width = channels // call.tensors[2].shape[1]
    to = Scratch(held), cut.packed, *_sizes(call), width
    every.append(launch(FAMILY, "group_slopes", "f32", cut.grid, *tensors(0, 1, 2, 3), *to))
    back = parts(cut)
    sums = Scratch(held), *tensors(6, 7), back.packed
    every.append(launch(FAMILY, "group_gradients", "f32", back.grid, *sums))
    return Plan(tuple(every), held + 16 * cut.results * cut.chunks)


def _of_x(call: CallSpec, rows: int, n: int, weighted: bool) -> list[Launch]:
    """Layer norm's gradient of the groups as rows."""
    count, made = call.numel(), []
    grad: TensorArg | Scratch = TensorArg(1)
    if weighted:
        grad = Scratch(0)
        args = *tensors(1, 4), grad, count, *_sizes(call)
        made.append(launch(FAMILY, "group_weighted", "f32", over(count), *args))
    cut = lines_of(rows, n, 1, _MOST, cut=False)
    args = TensorArg(0), grad, *tensors(2, 3, 4, 5)
    line = "layer_norm_backward_lines"
    made.append(launch("norm", line, "f32", cut.grid, *args, cut.packed, 0, threads=_MOST))
    return made


def _groups(call: CallSpec, mean: int) -> tuple[int, int]:
    """How many groups there are, and the elements of each."""
    samples, groups = call.tensors[mean].shape
    rows = samples * groups
    return rows, call.numel() // rows if rows else 0


def _sizes(call: CallSpec) -> tuple[int, int]:
    """C and L, as kernels divide by them."""
    _, channels, length = call.tensors[0].shape
    return max(1, channels), max(1, length)
