"""Launches of convolutions and their gradients."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import gcd

from gradcli.engine.device.gpu.ends import End, row_behind, written
from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Arg,
    CallSpec,
    KernelModule,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launches,
    over,
    tensors,
)
from gradcli.engine.device.gpu.tiles import (
    TENSOR_THREADS,
    THREADS,
    Cut,
    cut,
    divisor,
    join,
    pieces,
    scratch_of,
    tensor_cut,
    tensor_end,
    tensor_slice,
)

FEW = 3  # filters or channels of a group, up to which a thread does an output by itself
SHORTEST = 1024  # of a piece of the sums of one block
_ON_TENSOR_CORES = {
    "conv2d": "conv2d_tensor",
    "conv2d_weight": "conv2d_weight_tensor",
    "conv2d_input": "conv2d_input_tensor",
}
_NO_ROW = "128"  # the tile that has no registers left for a row
_PIECES = End((Scratch(0),))  # where sums go that are joined later
_SHAPE = struct.Struct("16I")
_ENDING = struct.Struct("2I")
_PHASES = struct.Struct("6I")


@dataclass(frozen=True)
class Conv:
    """The shape of a convolution: c and oc are the channels and filters of one group."""

    images: int
    groups: int
    c: int
    h: int
    w: int
    oc: int
    oh: int
    ow: int
    kh: int
    kw: int
    sh: int
    sw: int
    ph: int
    pw: int
    dh: int
    dw: int

    @property
    def outputs(self) -> int:
        """Of one filter."""
        return self.images * self.oh * self.ow

    @property
    def taps(self) -> int:
        """Of one filter."""
        return self.c * self.kh * self.kw

    def packed(self, piece: int = 0, bias: bool = False) -> bytes:
        """A struct Conv (csrc/gpu/conv/conv2d.h)."""
        shape = _SHAPE.pack(*vars(self).values())
        by = (self.oh * self.ow, self.ow, self.kh * self.kw, self.kw)
        return shape + b"".join(map(divisor, by)) + _ENDING.pack(bias, piece)


def conv_of(call: CallSpec, image: int, weight: int, out: int) -> Conv:
    """The convolution of a call, from the numbers of its tensors."""
    x, filters, y = (call.tensors[i].shape for i in (image, weight, out))
    sh, sw, ph, pw, dh, dw, groups = (call.size(i) for i in range(7))
    return Conv(
        *(x[0], groups, filters[1], x[2], x[3], filters[0] // groups, y[2], y[3]),
        *(filters[2], filters[3], sh, sw, ph, pw, dh, dw),
    )


@launches("conv2d_forward")
def forward(call: CallSpec) -> Plan:
    """The sums of all windows, and a bias."""
    return _forward(call, 3, written(3), call.option(0))


@launches("conv2d_forward_then")
def forward_then(call: CallSpec) -> Plan:
    """Convolution, then a row on all of it: with the bits of two calls."""
    return _forward(call, 5, row_behind(call, call.size(8)), call.option(2))


def _forward(call: CallSpec, out: int, end: End, may_round: float) -> Plan:
    everything = call.numel(out)
    if everything == 0:
        return Plan()
    s, biased = conv_of(call, 0, 1, out), call.numel(2) > 0
    sources = tensors(0, 1, 2)
    if _few(call, s.oc):
        args = (*sources, *end.to, s.packed(bias=biased), everything)
        return Plan((_each(call, "conv2d", end, everything, args),))
    whole = _cut(call, may_round, s.groups, s.oc, s.outputs, s.taps)
    apart = bool(end.row) and whole.tile.name == _NO_ROW and not whole.on_tensor_cores
    packed = s.packed(whole.piece, biased and whole.pieces == 1 and not apart)
    tiles = _tiles(call, "conv2d", whole, sources, _PIECES if apart else end, packed)
    if whole.pieces == 1 and not apart:
        return Plan((tiles,), scratch_of(tiles))
    columns = s.groups * s.oc if biased else 0
    added = join(
        _suffix(call), whole.pieces, end, everything, TensorArg(2), s.oh * s.ow, columns=columns
    )
    return Plan((tiles, added), 4 * whole.pieces * everything)


@launches("conv2d_grad_weight")
def grad_weight(call: CallSpec) -> Plan:
    """Sums over all outputs, for each weight of each filter."""
    everything = call.numel(2)
    if everything == 0:
        return Plan()
    s = conv_of(call, 1, 2, 0)
    whole = _cut(call, call.option(0), s.groups, s.oc, s.taps, s.outputs)
    sources = tensors(0, 1)
    tiles = _tiles(call, "conv2d_weight", whole, sources, written(2), s.packed(whole.piece))
    return _joined(call, tiles, whole.pieces, written(2), everything)


@launches("depthwise_grad_weight")
def depthwise_grad_weight(call: CallSpec) -> Plan:
    """The same for filters of one channel."""
    everything = call.numel(2)
    if everything == 0:
        return Plan()
    s = conv_of(call, 1, 2, 0)
    return _sums(call, "depthwise_weight", s, tensors(0, 1), TensorArg(2), everything)


@launches("conv2d_grad_bias")
def grad_bias(call: CallSpec) -> Plan:
    """Sums of the gradient over all images and places."""
    images, filters, oh, ow = call.tensors[0].shape
    if filters == 0:
        return Plan()
    s = Conv(images, 1, 0, 0, 0, filters, oh, ow, *[1] * 8)
    return _sums(call, "conv2d_bias", s, (TensorArg(0),), TensorArg(1), filters)


@launches("conv2d_grad_input")
def grad_input(call: CallSpec) -> Plan:
    """What each pixel has given to the outputs it met."""
    everything = call.numel(2)
    if everything == 0:
        return Plan()
    s, sources = conv_of(call, 2, 1, 0), tensors(0, 1)
    down, across = min(s.sh, s.h), min(s.sw, s.w)
    steps = gcd(s.sh, s.dh), gcd(s.sw, s.dw)
    every = s.sh // steps[0], s.sw // steps[1]
    phases = _PHASES.pack(down * across, across, *every, s.dh // steps[0], s.dw // steps[1])
    by = divisor(s.oc) + divisor(s.sh) + divisor(s.sw)
    if _few(call, s.c):
        args = (*sources, TensorArg(2), s.packed() + phases + by, everything)
        return Plan((_each(call, "conv2d_input", written(2), everything, args),))
    pixels = s.images * -(-s.h // s.sh) * -(-s.w // s.sw)
    taps = s.oc * -(-s.kh // every[0]) * -(-s.kw // every[1])
    whole = _cut(call, call.option(0), s.groups * down * across, s.c, pixels, taps)
    packed = s.packed(whole.piece) + phases + by
    tiles = _tiles(call, "conv2d_input", whole, sources, written(2), packed)
    return _joined(call, tiles, whole.pieces, written(2), everything)


def _suffix(call: CallSpec) -> str:
    return SUFFIX[call.tensors[0].dtype.name]


def _few(call: CallSpec, lines: int) -> bool:
    """Whether a thread does an output by itself; bfloat16 is for tensor cores alone."""
    return lines <= FEW and _suffix(call) == "f32"


def _cut(call: CallSpec, may_round: float, batch: int, rows: int, columns: int, depth: int) -> Cut:
    slice_of_k = tensor_slice(call, may_round)
    if slice_of_k:
        return tensor_cut(batch, rows, columns, depth, slice_of_k)
    return cut(batch, rows, columns, depth)


def _tiles(
    call: CallSpec, family: str, whole: Cut, sources: tuple[Arg, ...], end: End, packed: bytes
) -> Launch:
    suffix, threads = _suffix(call), THREADS
    now = end if whole.pieces == 1 else _PIECES
    if whole.on_tensor_cores:
        family, threads, now = _ON_TENSOR_CORES[family], TENSOR_THREADS, tensor_end(end, whole)
    module = now.module(family, suffix)
    kernel = f"{module.family}_{whole.tile.name}_{suffix}"
    return Launch(module, kernel, whole.blocks, threads, (*sources, *now.to, packed))


def _each(call: CallSpec, family: str, end: End, count: int, args: tuple[Arg, ...]) -> Launch:
    module = end.module(family, _suffix(call))
    kernel = f"{module.family}_each_{module.dtype}"
    return Launch(module, kernel, over(count), THREADS, args)


def _joined(call: CallSpec, made: Launch, count: int, end: End, size: int) -> Plan:
    """What was made in so many pieces, as one."""
    if count == 1:
        return Plan((made,), scratch_of(made))
    return Plan((made, join(_suffix(call), count, end, size, TensorArg(0))), 4 * count * size)


def _sums(
    call: CallSpec, kernel: str, s: Conv, sources: tuple[Arg, ...], to: TensorArg, size: int
) -> Plan:
    """A block for each of `size` sums over the outputs, and each piece of those."""
    suffix = _suffix(call)
    count, piece = pieces(size, s.outputs, SHORTEST)
    made = Launch(
        KernelModule("conv2d_weight", suffix),
        f"{kernel}_{suffix}",
        (size * count, 1, 1),
        THREADS,
        (*sources, to if count == 1 else Scratch(0), s.packed(piece)),
    )
    return _joined(call, made, count, End((to,)), size)
