"""The only place where parsed numbers become tensors: batches are gathered inside the engine."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli import engine
from gradcli.data.dataset import DataSpec
from gradcli.data.staging import gathered
from gradcli.dataclass import dataclass
from gradcli.engine import DType, Tensor
from gradcli.engine.array import Array
from gradcli.engine.device import meta

Statistic = float | Sequence[float]
Numbers = memoryview | bytes | array  # type: ignore[type-arg]


def tensor_of(numbers: Numbers, shape: Sequence[int]) -> Tensor:
    """Numbers in memory as a tensor of this shape, sharing the memory where the type allows it."""
    view = memoryview(numbers)
    same = {"B": engine.uint8, "i": engine.int32, "q": engine.int64, "f": engine.float32}
    if view.format == "d":
        flat = engine.frombuffer(view, dtype=engine.float64).to(engine.float32)
    elif view.format in same:
        flat = engine.frombuffer(view, dtype=same[view.format])
    else:
        flat = engine.frombuffer(array("i", array(view.format, view.tobytes())), dtype=engine.int32)
    return flat.reshape(tuple(shape))


@dataclass(frozen=True)
class Samples:
    """A split whose samples lie one after another: x = (stored / scale - mean) / std.

    Attributes:
        inputs: (N, ...) of any type; becomes float32 in the batch.
        targets: (N,) labels of a whole type, or (N, K) float32.
        mean: one number, or one for each channel of (N, C, ...); `std` likewise.
        itself: the inputs of a batch are its targets as well.
        rows: int64, the places of the samples, where they are not all that lie there.
        frame: what the samples of a batch are padded to, where the inputs lie in a mapped file.
        device: where batches go; None: where the samples are.
    """

    inputs: Tensor
    targets: Tensor
    scale: float = 1.0
    mean: Statistic = 0.0
    std: Statistic = 1.0
    itself: bool = False
    rows: Tensor | None = None
    frame: tuple[int, ...] | None = None
    device: str | None = None

    @property
    def size(self) -> int:
        """The number of samples."""
        return int((self.inputs if self.rows is None else self.rows).shape[0])

    @property
    def stored_targets(self) -> Tensor | None:
        """The targets of all samples; None where they are the inputs, which are still changed."""
        if self.itself:
            return None
        return (
            self.targets if self.rows is None else engine.index_select(self.targets, 0, self.rows)
        )

    def part(self, positions: range) -> Samples:
        """The samples at these positions, sharing memory."""
        low, high = positions.start, positions.stop
        return replace(self, inputs=self.inputs[low:high], targets=self.targets[low:high])

    def normalised(self, mean: Statistic, std: Statistic) -> Samples:
        """The same samples, less `mean` and divided by `std`."""
        return replace(self, mean=mean, std=std)

    def gathered(self) -> Samples:
        """The same samples, one after another."""
        if self.rows is None:
            return self
        inputs, targets = (
            engine.index_select(x, 0, self.rows) for x in (self.inputs, self.targets)
        )
        return replace(self, inputs=inputs, targets=targets, rows=None)

    def to(self, device: str) -> Samples:
        """The same samples in the memory of a device."""
        if self.rows is not None and device != "cpu":
            return self.gathered().to(device)
        inputs, targets = self.inputs.to(device), self.targets.to(device)
        return replace(self, inputs=inputs, targets=targets, device=None)

    def staged(self, device: str) -> Samples:
        """The same samples where they are, whose batches go to a device."""
        return replace(self, device=device)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs as float32, targets as int64 (labels) or float32."""
        return self.finish(self.raw(indices), indices)

    def raw(self, indices: Tensor) -> Tensor:
        """The inputs before they are normalised: stored / scale as float32."""
        inputs = unit(gathered(self.inputs, self.positions(indices), self.device), self.scale)
        return inputs if self.frame is None else padded(inputs, self.frame)

    def positions(self, indices: Tensor) -> Tensor:
        """Where the samples of these numbers lie."""
        return indices if self.rows is None else engine.index_select(self.rows, 0, indices)

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""
        positions = self.positions(indices).tolist()
        yield self.inputs, positions, 1
        if not self.itself:
            yield self.targets, positions, 1

    def finish(self, raw: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs from what `raw` gave, and the targets of the same samples."""
        inputs = normalised(raw, self.mean, self.std)
        if self.itself:
            return inputs, inputs
        targets = gathered(self.targets, self.positions(indices), self.device)
        if not targets.dtype.is_floating_point:
            targets = targets.to(engine.int64)
        return inputs, targets


@dataclass(frozen=True)
class InFiles:
    """What parts of samples are mapped from files, and take no memory of their own.

    Attributes:
        inputs: the shape of a sample in its file; None where they are in memory.
    """

    inputs: tuple[int, ...] | None = None
    targets: bool = False


def outlined(
    facts: DataSpec,
    inputs: str,
    targets: str,
    scale: float,
    mean: Statistic,
    std: Statistic,
    mapped: InFiles = InFiles(),  # noqa: B008 -- it never changes
) -> dict[str, Samples]:
    """Splits on "meta" with the sizes of `facts`, in the types that `tensor_of` has for these."""
    shape, types = mapped.inputs or facts.input, (_stored_type(inputs), _stored_type(targets))
    with engine.device("meta"):
        return {
            name: Samples(
                imagined((size, *shape), types[0], mapped=mapped.inputs is not None),
                imagined((size, *facts.target), types[1], mapped=mapped.targets),
                scale,
                mean,
                std,
                frame=framed(shape, facts.input) if mapped.inputs is not None else None,
            )
            for name, size in facts.sizes.items()
        }


def framed(shape: Sequence[int], frame: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that samples are padded to; None where they need no padding."""
    return None if tuple(shape) == tuple(frame) else tuple(frame)


def imagined(shape: Sequence[int], dtype: DType, *, mapped: bool) -> Tensor:
    """A tensor on "meta"; one that is mapped takes no memory there."""
    if not mapped:
        return engine.empty(*shape, dtype=dtype, device="meta")
    storage = meta.DEVICE.allocate(math.prod(shape) * dtype.size, mapped=True)
    flat = Array(storage, 0, (math.prod(shape),), (1,), dtype)
    return Tensor(flat).reshape(tuple(shape))


def padded(images: Tensor, shape: Sequence[int]) -> Tensor:
    """(N, C, H, W) in the middle of zeros of (N, *shape); one more row or column at the end."""
    if images.shape[1:] == tuple(shape):
        return images
    height, width = images.shape[2:]
    top, left = (shape[1] - height) // 2, (shape[2] - width) // 2
    out = engine.zeros(images.shape[0], *shape, dtype=images.dtype, device=images.device)
    out[:, :, top : top + height, left : left + width] = images
    return out


def _stored_type(name: str) -> DType:
    """The element type of a tensor of numbers that a file has in this type."""
    whole: dict[str, DType] = {"uint8": engine.uint8, "int64": engine.int64}
    return whole.get(name, engine.float32 if name.startswith("float") else engine.int32)


def scaled(inputs: Tensor, scale: float, mean: Statistic, std: Statistic) -> Tensor:
    """(inputs / scale - mean) / std as float32; steps that change nothing are left out."""
    return normalised(unit(inputs, scale), mean, std)


def unit(inputs: Tensor, scale: float) -> Tensor:
    """Inputs / scale as float32."""
    x = inputs.to(engine.float32)
    if scale == 1.0:
        return x
    return x / scale if x is inputs else x.div_(scale)  # new memory costs more than dividing


def normalised(x: Tensor, mean: Statistic, std: Statistic) -> Tensor:
    """(x - mean) / std."""
    if mean != 0.0:
        x = x - by_channel(mean, x.ndim)
    return x if std == 1.0 else x / by_channel(std, x.ndim)


def by_channel(value: Statistic, ndim: int) -> float | Tensor:
    """One number as it is; one for each channel as (C, 1, ...), to go with (N, C, ...)."""
    if isinstance(value, float | int):
        return value
    return tensor_of(array("f", value), (len(value), *[1] * (ndim - 2)))


@dataclass(frozen=True)
class Windows:
    """A split of text: sample i is the tokens from i * stride on, its target the same, one later.

    Attributes:
        tokens: (N,) of a whole type.
        device: where batches go; None: where the tokens are.
    """

    tokens: Tensor
    context: int
    stride: int
    device: str | None = None

    @property
    def size(self) -> int:
        """The number of windows that have all their next tokens."""
        return windows(int(self.tokens.shape[0]), self.context, self.stride)

    @property
    def stored_targets(self) -> Tensor:
        """The tokens, each once."""
        return self.tokens

    def to(self, device: str) -> Windows:
        """The same text in the memory of a device."""
        return replace(self, tokens=self.tokens.to(device), device=None)

    def staged(self, device: str) -> Windows:
        """The same text where it is, whose batches go to a device."""
        return replace(self, device=device)

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""
        yield self.tokens, (indices * self.stride).tolist(), self.context + 1

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets, both int64 (B, context)."""
        steps = tensor_of(array("q", range(self.context + 1)), (1, self.context + 1))
        positions = indices.reshape(-1, 1) * self.stride + steps
        tokens = gathered(self.tokens, positions.reshape(-1), self.device).to(engine.int64)
        both = tokens.reshape(-1, self.context + 1)
        return both[:, :-1].contiguous(), both[:, 1:].contiguous()


def windows(tokens: int, context: int, stride: int) -> int:
    """How many windows of `context` tokens and one more fit, `stride` apart."""
    return max(0, (tokens - context - 1) // stride + 1)
