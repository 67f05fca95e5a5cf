"""Launches of convolutions and their gradients."""

from __future__ import annotations

import struct
from dataclasses import replace
from math import gcd

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.ends import End, row_behind, store
from gradcli.engine.device.gpu.launch import Arg, CallSpec, Draft, launches, over, tensors
from gradcli.engine.device.gpu.tiles import Bias, cut_of, divisor, join, launch_product, pieces

FEW = 3  # filters or channels of a group, up to which a thread does an output by itself
SHORTEST = 1024  # of a piece of the sums of one block
_NO_ROW = "128"  # the tile that has no registers left for a row
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
def forward(call: Draft) -> None:
    """The sums of all windows, and a bias."""
    _forward(call, store(3), call.option(0))


@launches("conv2d_forward_then")
def forward_then(call: Draft) -> None:
    """Convolution, then a row on all of it: with the bits of two calls."""
    _forward(call, row_behind(call, call.size(8)), call.option(2))


def _forward(call: Draft, end: End, may_round: float) -> None:
    if not call.has(end.out):
        return
    s, biased, sources = conv_of(call, 0, 1, end.out), call.has(2), tensors(0, 1, 2)
    if _few(call, s.oc):
        _each(call, "conv2d", end, *sources, *end.to, s.packed(bias=biased))
        return
    whole = cut_of(call, may_round, s.groups, s.oc, s.outputs, s.taps)
    if end.row and whole.tile.name == _NO_ROW and not whole.on_tensor_cores:
        whole = replace(whole, apart=True)
    packed = s.packed(whole.piece, biased and not whole.apart)
    bias = Bias(2, s.oh * s.ow, s.groups * s.oc if biased else 0)
    launch_product(call, "conv2d", whole, sources, end, packed, bias=bias)


@launches("conv2d_grad_weight")
def grad_weight(call: Draft) -> None:
    """Sums over all outputs, for each weight of each filter."""
    if not call.has(2):
        return
    s = conv_of(call, 1, 2, 0)
    whole = cut_of(call, call.option(0), s.groups, s.oc, s.taps, s.outputs)
    launch_product(call, "conv2d_weight", whole, tensors(0, 1), store(2), s.packed(whole.piece))


@launches("depthwise_grad_weight")
def depthwise_grad_weight(call: Draft) -> None:
    """The same for filters of one channel."""
    if call.has(2):
        _sums(call, "depthwise_weight", conv_of(call, 1, 2, 0), tensors(0, 1), store(2))


@launches("conv2d_grad_bias")
def grad_bias(call: Draft) -> None:
    """Sums of the gradient over all images and places."""
    images, filters, oh, ow = call.tensors[0].shape
    if filters:
        s = Conv(images, 1, 0, 0, 0, filters, oh, ow, *[1] * 8)
        _sums(call, "conv2d_bias", s, tensors(0), store(1))


@launches("conv2d_grad_input")
def grad_input(call: Draft) -> None:
    """What each pixel has given to the outputs it met."""
    if not call.has(2):
        return
    s, sources, end = conv_of(call, 2, 1, 0), tensors(0, 1), store(2)
    down, across = min(s.sh, s.h), min(s.sw, s.w)
    steps = gcd(s.sh, s.dh), gcd(s.sw, s.dw)
    every = s.sh // steps[0], s.sw // steps[1]
    phases = _PHASES.pack(down * across, across, *every, s.dh // steps[0], s.dw // steps[1])
    phases += divisor(s.oc) + divisor(s.sh) + divisor(s.sw)
    if _few(call, s.c):
        _each(call, "conv2d_input", end, *sources, *end.to, s.packed() + phases)
        return
    pixels = s.images * -(-s.h // s.sh) * -(-s.w // s.sw)
    taps = s.oc * -(-s.kh // every[0]) * -(-s.kw // every[1])
    whole = cut_of(call, call.option(0), s.groups * down * across, s.c, pixels, taps)
    launch_product(call, "conv2d_input", whole, sources, end, s.packed(whole.piece) + phases)


def _few(call: Draft, lines: int) -> bool:
    """Whether a thread does an output by itself; bfloat16 is for tensor cores alone."""
    return lines <= FEW and call.suffix() == "f32"


def _each(call: Draft, name: str, end: End, *args: Arg) -> None:
    family, count = end.family(name), call.numel(end.out)
    call.launch(f"{family}_each", over(count), *args, count, family=family, row=end.row)


def _sums(call: Draft, kernel: str, s: Conv, sources: tuple[Arg, ...], end: End) -> None:
    """A block for each sum over the outputs, and each piece of those."""
    size = call.numel(end.out)
    count, piece = pieces(size, s.outputs, SHORTEST)
    (to,) = end.to
    if count > 1:
        to = call.scratch(4 * count * size)
    args = *sources, to, s.packed(piece)
    call.launch(kernel, (size * count, 1, 1), *args, family="conv2d_weight")
    if count > 1:
        join(call, to, count, end)
