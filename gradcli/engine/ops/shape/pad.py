"""Borders around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, empty, fill, run
from gradcli.engine.composite import function
from gradcli.engine.kind import Number
from gradcli.engine.op import op
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.elementwise.clamp import clamp
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape, check_shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity


def _reflect(front: int, size: int, behind: int) -> Tensor:
    indices = (abs(at) for at in range(-front, size + behind))
    return _as_index([at if at < size else 2 * (size - 1) - at for at in indices])


def _replicate(front: int, size: int, behind: int) -> Tensor:
    """By ops, which refuse at once what is too wide for memory: it may be of any width."""
    return clamp(arange(front + size + behind) - front, 0, size - 1)


def _circular(front: int, size: int, behind: int) -> Tensor:
    return _as_index([at % size for at in range(-front, size + behind)])


def _as_index(indices: list[int]) -> Tensor:
    return tensor(indices, dtype=dtypes.int64)


# Where elements are read, and how much wider than the tensor a border may not be.
_BORDERS: dict[str, tuple[Callable[[int, int, int], Tensor], int | None]] = {
    "reflect": (_reflect, -1),
    "replicate": (_replicate, None),
    "circular": (_circular, 0),
}


def _borders(name: str, x: Tensor | Array, pad: Sequence[int]) -> list[tuple[int, int, int]]:
    """(dimension, in front, behind), from the last dimension on."""
    if len(pad) % 2 or len(pad) > 2 * x.ndim or not all(type(n) is int for n in pad):
        raise OptionError(
            f"{name}: needs two whole numbers for each of at most {quantity(x.ndim, 'dimension')}, "
            f"got {pad!r}"
        )
    pairs = [(x.ndim - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    for d, front, behind in pairs:
        if x.shape[d] + front + behind < 0:
            raise _nothing_left(name, x.shape, d, front, behind)
    return pairs


def _nothing_left(name: str, shape: Shape, d: int, front: int, behind: int) -> ShapeError:
    return ShapeError(f"{name}: {front} and {behind} leave nothing of dimension {d}, {shape}")


@op(
    method=False,
    samples=[
        sample((3, 5), pad=(1, 2)),
        sample((2, 3, 4), pad=(-1, 2, 1, 0), value=0.5),
        sample((2, 1), pad=(-1, 0), value=2.0),
        sample((0, 3), pad=(0, 0, 1, 2), value=7.0),
        sample((), pad=()),
    ],
    wrong=[wrong(sample((3,), pad=(1,)), "needs two whole numbers for each of at most 1")],
)
def constant_pad_nd(x: Array, *, pad: Sequence[int], value: Number = 0) -> Array:
    """Borders of one value, as `pad` says of its mode "constant"."""
    pairs, shape, source = _borders("constant_pad_nd", x, pad), list(x.shape), x
    for d, front, behind in pairs:
        shape[d] += front + behind
        source = _between(source, d, *_inside(x.shape[d], -front, -behind))
    out = rest = empty(check_shape(shape, "constant_pad_nd"), x.dtype)
    for d, front, behind in pairs:  # what lies around the rest, then the rest alone
        begin, end = _inside(shape[d], front, behind)
        if end - begin != source.shape[d]:
            raise _nothing_left("constant_pad_nd", x.shape, d, front, behind)
        for border in (_between(rest, d, 0, begin), _between(rest, d, end, shape[d])):
            if border.numel:
                fill(border, value)
        rest = _between(rest, d, begin, end)
    if rest.numel:
        run("copy", source, rest)
    return out


def _inside(size: int, front: int, behind: int) -> tuple[int, int]:
    """Where of so many slices those begin and end that are left between two borders."""
    begin, end, _ = slice(max(0, front), size - max(0, behind)).indices(size)
    return begin, max(begin, end)


def _between(x: Array, d: int, begin: int, end: int) -> Array:
    """A view of the slices along d from `begin` on, before `end`."""
    shape = (*x.shape[:d], end - begin, *x.shape[d + 1 :])
    return x.view(shape, x.strides, x.offset + begin * x.strides[d] if begin < end else x.offset)


@constant_pad_nd.gradient
def constant_pad_nd_gradient(grad: Array, *, pad: Sequence[int]) -> Array:
    """The part of it inside the borders; 0 for what was cut off."""
    return constant_pad_nd.forward(grad, pad=_opposite(pad))  # type: ignore[no-any-return]


@constant_pad_nd.double_backward
def constant_pad_nd_double_backward(grad: Tensor, *, pad: Sequence[int]) -> Tensor:
    """The same with ops."""
    return constant_pad_nd(grad, _opposite(pad))


def _opposite(pad: Sequence[int]) -> tuple[int, ...]:
    return tuple(-n for n in pad)


@function(
    samples=[
        sample((3, 5), pad=(1, 2)),
        sample((2, 1, 4), pad=(-1, 2, 1, 0), value=0.5),
        sample((2, 3, 4), pad=(3, 1, 0, 2), mode="reflect"),
        sample((2, 3, 4), pad=(-1, 5), mode="replicate"),
        sample((1, 2, 3, 4), pad=(2, -1, 3, 1), mode="circular"),
        sample((0, 3), pad=(1, 0, 2, 0), value=7.0),
    ],
    wrong=[wrong(sample((2, 3, 0), pad=(1, 0), mode="replicate"), "nothing to fill a border with")],
    method=False,
)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Number | None = None
) -> Tensor:
    """Borders of so many elements, in front of and behind the last dimension, then the one before.

    They hold `value`, the nearest element, or the tensor mirrored or repeated; negative ones cut.
    """
    if mode == "constant":
        return constant_pad_nd(input, tuple(pad), 0 if value is None else value)
    pairs = _borders("pad", input, pad)
    if mode not in _BORDERS:
        raise OptionError(f"pad: mode must be constant, {', '.join(_BORDERS)}, got {mode!r:.60}")
    if value:
        raise OptionError(f"pad: value {value} has no meaning with mode {mode!r}")
    if not 0 <= input.ndim - len(pairs) - 1 <= 1:
        raise ShapeError(
            f"pad: {mode} pads all dimensions but the first, or but the first two, of "
            f"shape {input.shape}; got {len(pairs)} of them"
        )
    for d, front, behind in pairs:
        if mode == "circular":  # what is cut off does not come back at the other end
            cut = (*(0, 0) * (input.ndim - 1 - d), min(front, 0), min(behind, 0))
            input = constant_pad_nd(input, cut)
            front, behind = max(front, 0), max(behind, 0)
        input = _bordered(input, mode, d, front, behind)
    return input


def _bordered(x: Tensor, mode: str, d: int, front: int, behind: int) -> Tensor:
    indices, limit = _BORDERS[mode]
    size = x.shape[d]
    if limit is not None and max(front, behind) > max(size + limit, 0):
        raise ShapeError(
            f"pad: {mode} borders of dimension {d} can have "
            f"{quantity(max(size + limit, 0), 'element')}, "
            f"got {front} and {behind} for shape {x.shape}"
        )
    if not size and max(front, behind) > 0:
        raise ShapeError(f"pad: dimension {d} of {x.shape} has nothing to fill a border with")
    return index_select(x, d, indices(front, size, behind))
