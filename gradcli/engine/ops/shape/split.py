"""Tensors cut into views along a dimension: split, chunk, unbind, tensor_split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, fill, run
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.index.slices import part_along
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError


def _sizes(split_size: int | Sequence[int], length: int) -> list[int]:
    """How long each part is; the last may be shorter where one size is given for all."""
    if isinstance(split_size, int) and (split_size or not length):
        if split_size < 0:
            raise OptionError(f"split: split_size must be 0 or more, got {split_size}")
        begins = range(0, length, max(1, split_size))
        return [min(split_size, length - begin) for begin in begins] or [0]
    sizes = [-1] if isinstance(split_size, int) else list(split_size)
    if any(size < 0 for size in sizes):
        raise OptionError(f"split: split_size must be a positive size or sizes, got {split_size}")
    if sum(sizes) != length:
        raise ShapeError(f"split: sizes {tuple(sizes)} do not add up to {length}")
    return sizes


def _dim(name: str, shape: Shape, dim: int) -> int:
    """`dim` counted from the front."""
    if not shape:
        raise ShapeError(f"{name}: a tensor without dimensions has no parts")
    return shape_rules.dim_index(dim, len(shape), name)


def _parts(x: Array, dim: int, sizes: Sequence[int]) -> list[Array]:
    """Views of x, one behind the other along `dim`."""
    views, start = [], 0
    for size in sizes:
        shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
        at = x.offset + start * x.strides[dim] if shape_rules.numel(shape) else x.offset
        views.append(x.view(shape, x.strides, at))
        start += size
    return views


@op(
    shares="view",
    double_backward="linear",
    outputs=(),
    visible=0,
    samples=[
        sample((5, 3), split_size=2),
        sample((2, 6, 3), split_size=(1, 3, 2), dim=1),
        sample((2, 4), split_size=4, dim=-1),
        sample((3, 1), split_size=(0, 1), dim=1),
        sample((0, 3), split_size=2),
        sample((3, 0), split_size=0, dim=1),
    ],
    wrong=[
        wrong(sample((), split_size=1), "split: a tensor without dimensions"),
        wrong(sample((3,), split_size=(2, 2)), "sizes (2, 2) do not add up to 3"),
        wrong(sample((3,), split_size=0), "must be a positive size or sizes, got 0"),
        wrong(sample((3,), split_size=-1), "must be 0 or more, got -1"),
        wrong(sample((3,), split_size=(4, -1)), "must be a positive size or sizes, got (4, -1)"),
    ],
)
def split(x: Array, *, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Views of parts along `dim`: all of one size but the last, or each of its own."""
    d = _dim("split", x.shape, dim)
    return tuple(_parts(x, d, _sizes(split_size, x.shape[d])))


@split.gradient
def split_gradient(
    grads: tuple[Array | None, ...],
    *,
    shapes: tuple[Shape],
    dtypes: tuple[DType],
    split_size: int | Sequence[int],
    dim: int,
) -> Array:
    """The parts put together again, 0 where none arrived."""
    d = dim % len(shapes[0])
    sizes = _sizes(split_size, shapes[0][d])
    joined = _as_they_lie(grads, shapes[0], d, sizes)
    if joined is not None:
        return joined
    out = empty(shapes[0], dtypes[0])
    for part, grad in zip(_parts(out, d, sizes), grads, strict=True):
        if grad is None:
            fill(part, 0)
        else:
            run("copy", grad, part)
    return out


def _as_they_lie(
    grads: tuple[Array | None, ...], shape: Shape, d: int, sizes: Sequence[int]
) -> Array | None:
    """The view of which all gradients are parts, if there is one: then nothing is copied."""
    parts = [grad for grad in grads if grad is not None]
    if len(parts) < len(grads) or 0 in (*shape, *sizes):
        return None
    step = parts[0].strides[d]
    if sizes[0] == 1 and len(parts) > 1:  # a part of one slice has no step of its own
        step = parts[1].offset - parts[0].offset
    whole = parts[0].view(shape, (*parts[0].strides[:d], step, *parts[0].strides[d + 1 :]))
    lies = all(_same_view(a, b) for a, b in zip(_parts(whole, d, sizes), parts, strict=True))
    return whole if lies else None


def _same_view(a: Array, b: Array) -> bool:
    """True where both are the same elements of one block of memory."""
    steps = zip(a.shape, a.strides, b.strides, strict=True)
    return (
        a.storage is b.storage
        and a.offset == b.offset
        and all(size == 1 or mine == other for size, mine, other in steps)
    )


@function(
    shares="view",
    samples=[
        sample((5, 3), chunks=2),
        sample((2, 7), chunks=3, dim=-1),
        sample((3, 1), chunks=5),
        sample((0, 3), chunks=2, dim=1),
        sample((3, 0), chunks=2, dim=1),
    ],
    wrong=[
        wrong(sample((3,), chunks=0), "chunk: chunks must be a positive whole number, got 0"),
        wrong(sample((), chunks=1), "chunk: a tensor without dimensions has no parts"),
    ],
)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views along `dim`, of one size but the last, which may be shorter."""
    if chunks < 1:
        raise OptionError(f"chunk: chunks must be a positive whole number, got {chunks!r}")
    d = _dim("chunk", input.shape, dim)
    size = -(-input.shape[d] // chunks)
    return split.ran([input], {"split_size": size or [0] * chunks, "dim": d})


@function(
    shares="view",
    samples=[
        sample((3, 4)),
        sample((2, 3, 1), dim=1),
        sample((4, 1), dim=-1),
        sample((0, 3), dim=1),
        sample((0, 3)),
    ],
    wrong=[wrong(sample(()), "unbind: a tensor without dimensions has no parts")],
)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, each without that dimension, as views."""
    d = _dim("unbind", input.shape, dim)
    if input.shape[d] == 0:
        return ()
    shape = {"shape": (*input.shape[:d], *input.shape[d + 1 :])}
    parts = split.ran([input], {"split_size": 1, "dim": d})
    return tuple([reshape.ran([part], shape) for part in parts])


_MOST_EMPTY = 1 << 16  # parts of tensor_split that hold nothing


@function(
    shares="view",
    samples=[
        sample((7, 2), indices_or_sections=3),
        sample((2, 5), indices_or_sections=(1, 4), dim=-1),
        sample((6, 1), index((2,), 6)),
        sample((2, 3), indices_or_sections=5, dim=1),
    ],
    wrong=[wrong(sample((), indices_or_sections=1), "tensor_split: a tensor without dimensions")],
)
def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Views along `dim`: this many, the first ones longer by one; or cut before these indices."""
    d = _dim("tensor_split", input.shape, dim)
    cuts: Any = indices_or_sections
    if isinstance(cuts, Tensor):
        if cuts.dtype.kind != "int" or cuts.ndim > 1:
            raise DTypeError(f"tensor_split: cannot be cut at {cuts.dtype} {cuts.shape}")
        cuts = cuts.tolist()
    if isinstance(cuts, int):
        most = input.shape[d] + _MOST_EMPTY
        if not 1 <= cuts <= most:
            raise OptionError(
                f"tensor_split: indices_or_sections must be from 1 to {most} here, got {cuts}"
            )
        short, longer = divmod(input.shape[d], cuts)
        cuts = [i * short + min(i, longer) for i in range(1, cuts)]
    bounds = zip([None, *cuts], [*cuts, None], strict=True)
    return tuple(part_along(input, d, slice(a, b)) for a, b in bounds)
