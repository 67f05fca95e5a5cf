"""Random tensors. Each call is one draw of a generator (engine/random.py)."""

from __future__ import annotations

import struct
from array import array as packed
from collections.abc import Sequence
from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, copy_into, empty, run
from gradcli.engine.composite import function
from gradcli.engine.device import cpu
from gradcli.engine.device.context import chosen_by_device
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Sizes
from gradcli.engine.op import op
from gradcli.engine.ops.creation.creation import sizes_of
from gradcli.engine.ops.index.index_select import result_as
from gradcli.engine.random import Draw, Generator, default_generator
from gradcli.engine.recording import Recorder
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError, DTypeError, OptionError

IS_RANDOM = "its numbers are drawn"
_SIZES = [sample(size=(3, 5)), sample(size=(2, 1, 4), dtype=dtypes.float64), sample(size=(0, 3))]
_WHOLE = [
    wrong(
        sample(size=(3,), dtype=dtypes.int64),
        "draws float32, float64 or bfloat16, not gradcli.int64",
    )
]
_LIKE = [sample((3, 5)), sample((2, 1), dtype=dtypes.float32), sample(()), sample((0, 3))]


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
        self._state_given = False
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
        self._state_given = True

    def varying(self) -> Array:
        """Where the state lies."""
        return self.array

    def rows(self, steps: int) -> bytes | None:
        """The states in which eager steps would find the generator, which moves on."""
        if self._state_given:
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
    draws: _Draws = recorder.varies(generator, lambda: _Draws(generator))
    return draws


def next_draw(generator: Generator | None) -> tuple[Array, int]:
    """The next draw: the state for the kernel, and the draw's number from there."""
    source = generator or default_generator
    recorder = recording.current()
    if recorder is not None:
        draws = _draws(recorder, source)
        return draws.array, draws.next_number()
    return named_draw(source.next_draw())


def named_draw(draw: Draw) -> tuple[Array, int]:
    """A draw that was named, as `next_draw` gives it."""
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


def draw_floats(
    op: str,
    kernel: str,
    shape: Shape,
    dtype: DType | None,
    generator: Generator | None,
    options: Sequence[float],
) -> Array:
    """A fresh array from one draw of a float kernel, in the name of `op`."""
    computed_dtype = dtypes.check_dtype(dtype or dtypes.float32)
    if not computed_dtype.is_floating_point:
        raise DTypeError(f"{op}: draws float32, float64 or bfloat16, not {computed_dtype}")
    (state, number), out = next_draw(generator), empty(shape, computed_dtype.computed)
    run(kernel, state, out, sizes=(number,), options=options)
    if computed_dtype is out.dtype:
        return out
    if kernel == "uniform":  # the upper end is not reached by rounding either
        run("clamp", out, out, options=(-inf, _half_below(options[1])))
    return out.cast(computed_dtype)


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


@function(method=False, samples=_SIZES, wrong=_WHOLE, why=IS_RANDOM)
@chosen_by_device
def rand(
    *size: Sizes,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers evenly spread over 0 (included) to 1 (not included)."""
    del device
    numbers = draw_floats("rand", "uniform", sizes_of(size, "rand"), dtype, generator, (0.0, 1.0))
    return Tensor(numbers, requires_grad=requires_grad)


@function(method=False, samples=_SIZES, wrong=_WHOLE, why=IS_RANDOM)
@chosen_by_device
def randn(
    *size: Sizes,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normally distributed numbers, mean 0 and variance 1."""
    del device
    numbers = draw_floats("randn", "normal", sizes_of(size, "randn"), dtype, generator, (0.0, 1.0))
    return Tensor(numbers, requires_grad=requires_grad)


@function(method=False, samples=_LIKE, why=IS_RANDOM)
def rand_like(input: Tensor, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """`rand` in the shape and type of another tensor."""
    return rand(input.shape, dtype=dtype or input.dtype, device=device)


@function(method=False, samples=_LIKE, why=IS_RANDOM)
def randn_like(input: Tensor, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """`randn` in the shape and type of another tensor."""
    return randn(input.shape, dtype=dtype or input.dtype, device=device)


@function(
    method=False,
    samples=[
        sample(low=-3, high=4, size=(3, 5)),
        sample(low=1, high=2, size=(2, 1), dtype=dtypes.float64),
        sample(low=0, high=9, size=(0, 3)),
    ],
    wrong=[wrong(sample(low=0, high=2), "takes (low, high, size) or (high, size)")],
    why=IS_RANDOM,
)
@chosen_by_device
def randint(
    low: int,
    high: int | Sequence[int],
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """Whole numbers from low to below high; (low, high, size) or (high, size) as in torch."""
    del device
    if size is None and isinstance(high, (tuple, list)):
        size, low, high = high, 0, low
    if not isinstance(high, int) or size is None:
        raise OptionError("randint: takes (low, high, size) or (high, size), with a tuple as size")
    limit = 1 << 63
    if not -limit <= low < high < limit:
        raise OptionError(f"randint: needs low < high within int64, got {low} and {high}")
    state, number = next_draw(generator)
    out = empty(shapes.check_shape(size, "randint"), dtypes.int64)
    run("randint", state, out, sizes=(number, low, high))
    return Tensor(out if dtype in (None, dtypes.int64) else out.cast(dtype or dtypes.int64))


@function(
    method=False,
    samples=[sample(n=7), sample(n=1), sample(n=0)],
    wrong=[wrong(sample(n=-1), "-1")],
    why=IS_RANDOM,
)
@chosen_by_device
def randperm(n: int, *, generator: Generator | None = None, device: str | None = None) -> Tensor:
    """The whole numbers 0 to n - 1 in a random order, int64."""
    del device
    state, number = next_draw(generator)
    out = empty(shapes.check_shape((n,), "randperm"), dtypes.int64)
    run("randperm", state, out, sizes=(number,))
    return Tensor(out)


@function(
    method=False,
    samples=[
        sample((3, 5), low=-3, high=4),
        sample((2, 1), low=9, dtype=dtypes.int64),
    ],
    why=IS_RANDOM,
)
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """Whole numbers from low to below high, in the shape and type of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, dtype=dtype or input.dtype, device=device)


MOST = 128  # numbers of one draw


@op(
    method=False,
    samples=[
        sample(index((3,), 1 << 40), index((4,), 60_000), count=5),
        sample(index((3,), 9), index((1,), 3), count=128),
        sample(index((3,), 9), index((0,), 3), count=2),
        sample(index((3,), 9), index((70,), 3), count=1),
    ],
    wrong=[
        wrong(sample(index((2,), 9), index((4,), 3), count=1), "rand_at: "),
        wrong(sample(index((3,), 9), (4,), count=1), "rand_at: takes int64"),
        wrong(sample(index((3,), 9), index((4,), 3), count=129), "rand_at: count must be"),
    ],
    why="a draw does not change smoothly",
)
def rand_at(state: Array, draws: Array, *, count: int, dtype: DType = dtypes.float32) -> Array:
    """Row i: the first `count` numbers in [0, 1) of draw number draws[i] after `state`.

    `state` is what `get_rng_state` gives: (key, step, first draw). A row depends on these numbers
    alone, and on no other row.
    """
    if state.shape != (3,) or draws.ndim != 1 or {state.dtype, draws.dtype} != {dtypes.int64}:
        raise DTypeError(
            "rand_at: takes int64 (3,) and int64 (n,), got "
            f"{state.dtype} {state.shape} and {draws.dtype} {draws.shape}"
        )
    if not 0 <= count <= MOST:
        raise OptionError(f"rand_at: count must be 0 to {MOST}, got {count}")
    shape, inputs = (draws.shape[0], count), (state.contiguous(), draws.contiguous())
    return result_as("rand_at", "uniform_at", *inputs, shape=shape, dtype=dtype, sizes=(0,))
