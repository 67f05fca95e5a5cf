"""Random tensors and dropout. Each call is one draw of a generator (engine/random.py)."""

from __future__ import annotations

import struct
from array import array as packed
from collections.abc import Sequence
from math import inf
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, copy_into, empty, run
from gradcli.engine.composite import IN_PLACE, function
from gradcli.engine.device import cpu
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Sizes
from gradcli.engine.op import op
from gradcli.engine.ops.family import as_float
from gradcli.engine.random import Draw, Generator, default_generator
from gradcli.engine.recording import Recorder
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import CaptureError, DTypeError, OptionError

DRAWN = "its numbers are drawn"
_SIZES = [sample(size=(3, 5)), sample(size=(2, 1, 4), dtype=dtypes.float64), sample(size=(0, 3))]
_WHOLE = [
    wrong(
        sample(size=(3,), dtype=dtypes.int64),
        "draws float32, float64 or bfloat16, not gradcli.int64",
    )
]
_LIKE = [sample((3, 5)), sample((2, 1), dtype=dtypes.float32), sample(()), sample((0, 3))]
_AT_1 = Draw(key=1, step=2, number=3)


def _memory(numbers: packed[int]) -> Array:
    """What kernels read of a draw: (key, step, number of the first draw)."""
    return Array(cpu.borrow(numbers), 0, (3,), (1,), dtypes.int64)


class _Draws:
    """The draws of a generator among recorded calls, counted from the first of them; a Varying.

    Kernels read the generator's state from memory, so that each replay draws other numbers.
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._state = generator.get_state()
        self._count = 0
        self._given = False
        self._numbers = packed("q", self._state)
        self.array = _memory(self._numbers)

    def next_number(self) -> int:
        """Which draw this is, from 0."""
        draw = self._generator.next_draw()
        if (draw.key, draw.step) != self._state[:2]:
            raise CaptureError("manual_seed: cannot be captured; seed before the captured step")
        number = draw.number - self._state[2]
        self._count = max(self._count, number + 1)  # a checkpoint makes draws again
        return number

    def give(self, state: Array) -> None:
        """From here on the state is what a recorded call copies from `state`."""
        if self._count:
            raise CaptureError("set_rng_state: comes after a draw of the same captured step")
        copy_into(self.array, state)
        self._given = True

    def varying(self) -> Array:
        """Where the state lies."""
        return self.array

    def rows(self, steps: int) -> bytes | None:
        """The states in which eager steps would find the generator, which moves on."""
        if self._given:
            return None
        key, step, first = self._generator.take(steps * self._count)
        if steps > 1:
            firsts = [first + i * self._count for i in range(steps)]
            return packed("q", [n for draw in firsts for n in (key, step, draw)]).tobytes()
        self._numbers[0], self._numbers[1], self._numbers[2] = key, step, first
        return None

    def undo(self) -> None:
        """The generator stands where it stood before the first of these draws."""
        self._generator.set_state(*self._state)


def _draws(recorder: Recorder, generator: Generator) -> _Draws:
    found: _Draws = recorder.varies(generator, lambda: _Draws(generator))
    return found


def _next(generator: Generator | None) -> tuple[Array, int]:
    """The next draw: the state for the kernel, and the draw's number from there."""
    source = generator or default_generator
    recorder = recording.current()
    if recorder is not None:
        draws = _draws(recorder, source)
        return draws.array, draws.next_number()
    return _at(source.next_draw())


def _at(draw: Draw) -> tuple[Array, int]:
    """A draw that was named, as `_next` gives it."""
    return _memory(packed("q", (draw.key, draw.step, draw.number))), 0


@function(method=False)
def get_rng_state() -> Tensor:
    """Where the default generator stands: int64 (key, step, draws made)."""
    return Tensor(_memory(packed("q", default_generator.get_state())))


@function(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator where `get_rng_state` found one; in a captured step, every time."""
    if new_state.shape != (3,) or new_state.dtype is not dtypes.int64:
        raise OptionError(
            f"set_rng_state: takes int64 (3,), got {new_state.dtype} {new_state.shape}"
        )
    recorder = recording.current()
    if recorder is not None:
        _draws(recorder, default_generator).give(new_state.array)
    else:
        default_generator.set_state(*new_state.tolist())


def _drawn(
    op: str,
    kernel: str,
    shape: Shape,
    dtype: DType | None,
    generator: Generator | None,
    options: Sequence[float],
) -> Array:
    """A fresh array from one draw of a float kernel, in the name of `op`."""
    chosen = dtypes.checked(dtype or dtypes.float32)
    if not chosen.is_floating_point:
        raise DTypeError(f"{op}: draws float32, float64 or bfloat16, not {chosen}")
    (state, number), out = _next(generator), empty(shape, chosen.computed)
    run(kernel, state, out, sizes=(number,), options=options)
    if chosen is out.dtype:
        return out
    if kernel == "uniform":  # the upper end is not reached by rounding either
        run("clamp", out, out, options=(-inf, _half_below(options[1])))
    return out.cast(chosen)


def _half_below(value: float) -> float:
    """The largest bfloat16 below a number."""
    (bits,) = struct.unpack("=i", struct.pack("=f", value))
    if value > 0:
        bits = (bits - 1) & ~0xFFFF
    elif value < 0:
        bits = (bits | 0xFFFF) + 1
    else:
        bits = -0x7FFF0000  # the smallest step
    return float(struct.unpack("=f", struct.pack("=i", bits))[0])


def _size(size: tuple[Any, ...], op: str) -> Shape:
    """Sizes given one by one or as one tuple."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    return shapes.checked(size, op)


@function(method=False, samples=_SIZES, wrong=_WHOLE, why=DRAWN)
def rand(
    *size: Sizes,
    generator: Generator | None = None,
    dtype: DType | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers evenly spread over 0 (included) to 1 (not included)."""
    made = _drawn("rand", "uniform", _size(size, "rand"), dtype, generator, (0.0, 1.0))
    return Tensor(made, requires_grad=requires_grad)


@function(method=False, samples=_SIZES, wrong=_WHOLE, why=DRAWN)
def randn(
    *size: Sizes,
    generator: Generator | None = None,
    dtype: DType | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normally distributed numbers, mean 0 and variance 1."""
    made = _drawn("randn", "normal", _size(size, "randn"), dtype, generator, (0.0, 1.0))
    return Tensor(made, requires_grad=requires_grad)


@function(method=False, samples=_LIKE, why=DRAWN)
def rand_like(input: Tensor, *, dtype: DType | None = None) -> Tensor:
    """`rand` in the shape and type of another tensor."""
    return rand(input.shape, dtype=dtype or input.dtype)


@function(method=False, samples=_LIKE, why=DRAWN)
def randn_like(input: Tensor, *, dtype: DType | None = None) -> Tensor:
    """`randn` in the shape and type of another tensor."""
    return randn(input.shape, dtype=dtype or input.dtype)


@function(
    method=False,
    samples=[
        sample(low=-3, high=4, size=(3, 5)),
        sample(low=1, high=2, size=(2, 1), dtype=dtypes.float64),
        sample(low=0, high=9, size=(0, 3)),
    ],
    wrong=[wrong(sample(low=0, high=2), "takes (low, high, size) or (high, size)")],
    why=DRAWN,
)
def randint(
    low: int,
    high: int | Sequence[int],
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Whole numbers from low to below high; (low, high, size) or (high, size) as in torch."""
    if size is None and isinstance(high, (tuple, list)):
        size, low, high = high, 0, low
    if not isinstance(high, int) or size is None:
        raise OptionError("randint: takes (low, high, size) or (high, size), with a tuple as size")
    limit = 1 << 63
    if not -limit <= low < high < limit:
        raise OptionError(f"randint: needs low < high within int64, got {low} and {high}")
    state, number = _next(generator)
    out = empty(shapes.checked(size, "randint"), dtypes.int64)
    run("randint", state, out, sizes=(number, low, high))
    return Tensor(out if dtype in (None, dtypes.int64) else out.cast(dtype or dtypes.int64))


@function(
    method=False,
    samples=[sample(n=7), sample(n=1), sample(n=0)],
    wrong=[wrong(sample(n=-1), "-1")],
    why=DRAWN,
)
def randperm(n: int, *, generator: Generator | None = None) -> Tensor:
    """The whole numbers 0 to n - 1 in a random order, int64."""
    state, number = _next(generator)
    out = empty(shapes.checked((n,), "randperm"), dtypes.int64)
    run("randperm", state, out, sizes=(number,))
    return Tensor(out)


def _overwrite(input: Tensor, name: str, drawn: Array) -> Tensor:
    refuse_recorded(name, input)
    copy_into(input.array, drawn)
    return input


@function(
    "uniform_",
    samples=[sample((3, 5)), sample((2, 1, 4), low=-1.0, high=2.0), sample(()), sample((0, 3))],
    wrong=[wrong(sample((2,), low=2.0, high=1.0), "needs low <= high, got 2.0 and 1.0")],
    why=IN_PLACE,
)
def uniform_(
    input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite every element with a number evenly spread over low to high."""
    if not low <= high:
        raise OptionError(f"uniform_: needs low <= high, got {low} and {high}")
    drawn = _drawn("uniform_", "uniform", input.shape, input.dtype, generator, (low, high))
    return _overwrite(input, "uniform_", drawn)


@function(
    "normal_",
    samples=[sample((3, 5)), sample((2, 1, 4), mean=-1.0, std=0.5), sample(()), sample((0, 3))],
    wrong=[wrong(sample(index((2,), 3)), "draws float32, float64 or bfloat16, not gradcli.int64")],
    why=IN_PLACE,
)
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite every element with a normally distributed number."""
    if not std >= 0:
        raise OptionError(f"normal_: std must be at least 0, got {std}")
    drawn = _drawn("normal_", "normal", input.shape, input.dtype, generator, (mean, std))
    return _overwrite(input, "normal_", drawn)


def _composed_dropout(
    x: Tensor,
    *,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    draw: Draw | None = None,
    kept: Tensor | None = None,
) -> Tensor:
    """The product with what was drawn."""
    del training, inplace, draw
    return x if kept is None else x * _factors(kept, p, x.dtype)


def _factors(kept: Tensor, p: float, dtype: DType) -> Tensor:
    return kept.to(dtype) * (0.0 if p == 1 else 1 / (1 - p))


@op(
    shares="either",
    method=False,
    outputs=("y", "kept"),
    saves="kept",
    composed=_composed_dropout,
    samples=[
        sample((3, 5), draw=_AT_1),
        sample((4, 1), p=0.2, draw=_AT_1),
        sample((2, 3, 4), p=0.0, draw=_AT_1),
        sample((300,), p=0.9, draw=_AT_1),
        sample((3,), p=1.0, draw=_AT_1),
        sample((2, 3), training=False),
        sample((0, 3), draw=_AT_1),
        sample((), draw=_AT_1),
    ],
    wrong=[
        wrong(sample((2,), p=1.5), "dropout: p must be from 0 to 1, got 1.5"),
        wrong(sample((2,), p=float("nan")), "dropout: p must be from 0 to 1"),
        wrong(sample((2,), inplace=True), "dropout: inplace must be False"),
    ],
)
def dropout(
    x: Array,
    *,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    draw: Draw | None = None,
) -> tuple[Array, Array | None]:
    """While training, each element times 0 with probability p, otherwise times 1 / (1 - p).

    Which ones is a draw: `draw` itself, or the next one of the default generator.
    """
    if not 0 <= p <= 1:
        raise OptionError(f"dropout: p must be from 0 to 1, got {p}")
    if inplace:
        raise OptionError("dropout: inplace must be False; the result is the same")
    if not training:
        return x, None
    x = as_float(x).contiguous()
    state, number = _at(draw) if draw else _next(None)
    y, kept = empty(x.shape, x.dtype), empty(x.shape, dtypes.uint8)
    run("dropout_forward", x, state, y, kept, sizes=(number,), options=(p,))
    return y, kept


@dropout.gradient
def dropout_gradient(grad: Array, *, kept: Array | None, p: float) -> Array:
    """The same elements times the same factors."""
    if kept is None:
        return grad
    out = empty(grad.shape, grad.dtype)
    run("dropout_backward", grad.contiguous(), kept, out, options=(p,))
    return out


@dropout.gradient_graph
def dropout_gradient_graph(grad: Tensor, *, kept: Tensor | None, p: float) -> Tensor:
    """The same elements times the same factors."""
    return grad if kept is None else grad * _factors(kept, p, grad.dtype)
