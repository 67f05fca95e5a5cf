"""The eight workloads: shapes, first weights and batches, the same for every competitor.

Weights and batches are written to one file that each competitor reads, so that all of them train
from the same numbers and their losses can be compared. Names and shapes are those of torch.
"""

from __future__ import annotations

import itertools
import math
import mmap
import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BATCHES = 8
SEED = 20


@dataclass(frozen=True)
class Parameter:
    """One tensor of weights; its first values are uniform within `bound` of `centre`."""

    name: str
    shape: tuple[int, ...]
    bound: float = 0.0
    centre: float = 0.0

    @property
    def size(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Field:
    """One side of a batch: floats in -1..1, or whole numbers below `below`."""

    shape: tuple[int, ...]
    below: int | None = None

    @property
    def size(self) -> int:
        """How many numbers a batch has."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Bytes a number."""
        return 4 if self.below is None else 8


@dataclass(frozen=True)
class Workload:
    """A model with its optimizer and batch; `scan` steps are run in one call where that exists."""

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    x: Field
    y: Field
    optimizer: str
    lr: float
    scan: int
    gflop: float


def _linear(name: str, out: int, into: int, bias: bool = True) -> tuple[Parameter, ...]:
    bound = into**-0.5
    weight = Parameter(f"{name}.weight", (out, into), bound)
    return (weight, Parameter(f"{name}.bias", (out,), bound)) if bias else (weight,)


def _conv(name: str, out: int, into: int, side: int, bias: bool = True) -> tuple[Parameter, ...]:
    bound = (into * side * side) ** -0.5
    weight = Parameter(f"{name}.weight", (out, into, side, side), bound)
    return (weight, Parameter(f"{name}.bias", (out,), bound)) if bias else (weight,)


def _norm(name: str, size: int) -> tuple[Parameter, ...]:
    return Parameter(f"{name}.weight", (size,), centre=1.0), Parameter(f"{name}.bias", (size,))


def _mlp(*sizes: int) -> tuple[Parameter, ...]:
    layers = enumerate(itertools.pairwise(sizes))
    return tuple(p for i, (into, out) in layers for p in _linear(f"layers.{i}", out, into))


def _cnn() -> tuple[Parameter, ...]:
    return (
        *_conv("conv1", 16, 1, 3),
        *_conv("conv2", 32, 16, 3),
        *_linear("hidden", 128, 32 * 7 * 7),
        *_linear("head", 10, 128),
    )


RESNET_BLOCKS = ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))


def _resnet() -> Iterator[Parameter]:
    yield from _conv("stem", 16, 3, 3, bias=False)
    yield from _norm("stem_norm", 16)
    for i, (into, out, stride) in enumerate(RESNET_BLOCKS):
        yield from _conv(f"blocks.{i}.conv1", out, into, 3, bias=False)
        yield from _norm(f"blocks.{i}.norm1", out)
        yield from _conv(f"blocks.{i}.conv2", out, out, 3, bias=False)
        yield from _norm(f"blocks.{i}.norm2", out)
        if stride != 1:
            yield from _conv(f"blocks.{i}.short", out, into, 1, bias=False)
            yield from _norm(f"blocks.{i}.short_norm", out)
    yield from _linear("head", 10, 64)


GPT_LAYERS, GPT_HEADS, GPT_WIDTH, GPT_CONTEXT, VOCABULARY = 6, 4, 128, 128, 65


def _gpt() -> Iterator[Parameter]:
    width = GPT_WIDTH
    yield Parameter("token.weight", (VOCABULARY, width), 0.05)
    yield Parameter("position.weight", (GPT_CONTEXT, width), 0.05)
    for i in range(GPT_LAYERS):
        yield from _norm(f"blocks.{i}.norm1", width)
        yield from _linear(f"blocks.{i}.qkv", 3 * width, width, bias=False)
        yield from _linear(f"blocks.{i}.out", width, width, bias=False)
        yield from _norm(f"blocks.{i}.norm2", width)
        yield from _linear(f"blocks.{i}.up", 4 * width, width, bias=False)
        yield from _linear(f"blocks.{i}.down", width, 4 * width, bias=False)
    yield from _norm("norm", width)
    yield from _linear("head", VOCABULARY, width, bias=False)


LSTM_WIDTH, LSTM_STEPS = 128, 64


def _lstm() -> Iterator[Parameter]:
    width, bound = LSTM_WIDTH, LSTM_WIDTH**-0.5
    yield Parameter("token.weight", (VOCABULARY, width), 1.0)
    for kind in ("ih", "hh"):
        yield Parameter(f"lstm.weight_{kind}_l0", (4 * width, width), bound)
    for kind in ("ih", "hh"):
        yield Parameter(f"lstm.bias_{kind}_l0", (4 * width,), bound)
    yield from _linear("head", VOCABULARY, width)


def _text(batch: int, steps: int) -> tuple[Field, Field]:
    return Field((batch, steps), VOCABULARY), Field((batch, steps), VOCABULARY)


_DEEP = _mlp(784, 128, 64, 32, 10)

WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload(
            "W1", "MLP 784-128-64-32-10, Adam, batch 16",
            _DEEP, Field((16, 784)), Field((16,), 10), "adam", 1e-3, 64, 0.0074,
        ),
        Workload(
            "W2", "MLP 784-128-64-32-10, Adam, batch 128",
            _DEEP, Field((128, 784)), Field((128,), 10), "adam", 1e-3, 32, 0.0595,
        ),
        Workload(
            "W3", "MLP 784-512-512-10, SGD momentum, batch 256",
            _mlp(784, 512, 512, 10), Field((256, 784)), Field((256,), 10), "sgd", 1e-2, 8, 0.82,
        ),
        Workload(
            "W4", "CNN on 1x28x28, Adam, batch 64",
            _cnn(), Field((64, 1, 28, 28)), Field((64,), 10), "adam", 1e-3, 4, 0.453,
        ),
        Workload(
            "W5", "ResNet on 3x32x32, SGD momentum, batch 64",
            # A rate of 1e-2 makes rounding grow to 4e-4 of the loss in 16 steps, this one to 4e-5.
            tuple(_resnet()), Field((64, 3, 32, 32)), Field((64,), 10), "sgd", 3e-3, 2, 10.2,
        ),
        Workload(
            "W6", "GPT of 6 layers, width 128, AdamW, batch 16x128",
            tuple(_gpt()), *_text(16, GPT_CONTEXT), "adamw", 3e-4, 2, 15.8,
        ),
        Workload(
            "W7", "LSTM of width 128, Adam, batch 32x64",
            tuple(_lstm()), *_text(32, LSTM_STEPS), "adam", 1e-3, 4, 1.71,
        ),
        Workload(
            "W8", "MLP 1-10-1 sigmoid, SGD, batch 1",
            _mlp(1, 10, 1), Field((1, 1)), Field((1, 1)), "plain", 1e-2, 4096, 1e-7,
        ),
    )
}  # fmt: skip


def _numbers(source: random.Random, size: int, bound: float, centre: float) -> bytes:
    if not bound:
        return array("f", [centre]).tobytes() * size
    draw = source.random
    return array("f", [centre + bound * (2 * draw() - 1) for _ in range(size)]).tobytes()


def _batch_side(source: random.Random, side: Field) -> bytes:
    if side.below is None:
        return _numbers(source, side.size, 1.0, 0.0)
    below, draw = side.below, source.random
    return array("q", [int(draw() * below) for _ in range(side.size)]).tobytes()


def write(workload: Workload, path: Path) -> None:
    """First weights, then the batches' inputs, then their targets, as raw numbers."""
    source = random.Random(SEED)
    with path.open("wb") as file:
        for p in workload.parameters:
            file.write(_numbers(source, p.size, p.bound, p.centre))
        if file.tell() % 8:
            file.write(bytes(4))  # whole numbers of eight bytes begin at a multiple of eight
        for side in (workload.x, workload.y):
            for _ in range(BATCHES):
                file.write(_batch_side(source, side))


@dataclass(frozen=True)
class Course:
    """What `write` wrote, as views of the file: weights by name, all inputs, all targets."""

    workload: Workload
    weights: dict[str, memoryview]
    x: memoryview
    y: memoryview

    def scan_batches(self) -> list[list[int]]:
        """Which batches each scan runs over, so that all of them come round in turn."""
        length = self.workload.scan
        calls = max(1, BATCHES // length)
        return [[(c * length + i) % BATCHES for i in range(length)] for c in range(calls)]


def read(workload: Workload, path: Path) -> Course:
    """The weights and batches of a workload."""
    with path.open("rb") as file:
        # A private writable view: libraries warn of memory that is read-only.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    view, at = memoryview(mapped), 0
    weights = {}
    for p in workload.parameters:
        weights[p.name] = view[at : at + 4 * p.size]
        at += 4 * p.size
    at += at % 8
    sides = []
    for side in (workload.x, workload.y):
        nbytes = BATCHES * side.size * side.width
        sides.append(view[at : at + nbytes])
        at += nbytes
    return Course(workload, weights, *sides)
