"""Tensors filled from distributions, and indices drawn by their weights."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording, table
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, copy_into
from gradcli.engine.composite import IN_PLACE, function
from gradcli.engine.device.context import chosen_by_device
from gradcli.engine.dtype import DType
from gradcli.engine.ops.overwrite import overwrite
from gradcli.engine.ops.random.random import IS_RANDOM, draw_floats
from gradcli.engine.random import Generator
from gradcli.engine.sample import SHAPES, away_from, index, positive, sample, unit, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import DTypeError, OptionError, ShapeError
from gradcli.wording import quantity


@function(
    method=False,
    samples=[
        sample((3, 5), positive((3, 5))),
        sample((2, 1, 4), positive((3, 1))),
        sample((4,), std=0.5),
        sample(positive((1,)), mean=-2.0),
        sample(mean=1.0, std=2.0, size=(2, 3)),
        sample((0, 3), positive((3,))),
    ],
    wrong=[
        wrong(sample(), "with two numbers a size is needed"),
        wrong(sample((3,), size=(3,)), "the size is that of mean and std"),
        wrong(sample((3,), positive((4,))), "shapes (3,) and (4,) do not broadcast"),
        wrong(sample(size=(3,), std=-1.0), "std must be at least 0"),
        wrong(sample((3,), away_from((3,), -5.0)), "std must be at least 0"),
    ],
)
@chosen_by_device
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """Normally distributed numbers, each with its mean and standard deviation: mean + std * z."""
    del device
    _check_spread(std)
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not tensors:
        if size is None:
            raise OptionError("normal: with two numbers a size is needed")
        return table.randn(*size, generator=generator, dtype=dtype) * std + mean
    if size is not None:
        raise OptionError("normal: the size is that of mean and std, and is not given")
    shape = shapes.broadcast(tensors[0].shape, tensors[-1].shape, "normal")
    return table.randn(*shape, generator=generator, dtype=tensors[0].dtype) * std + mean


@function(
    samples=[*(sample(unit(shape)) for shape in SHAPES), sample((2, 1, 4), p=0.3)],
    wrong=[
        wrong(sample((3,), p=1.5), "p must be from 0 to 1, got 1.5"),
        wrong(sample(away_from((3,), 3.5)), "probabilities must be from 0 to 1"),
    ],
    why=IS_RANDOM,
)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """1 with the probability that the element is, or p for all, otherwise 0."""
    if not input.is_floating_point():
        raise DTypeError(
            f"bernoulli: input must be float32, float64 or bfloat16, got {input.dtype}"
        )
    probabilities = input if p is None else p
    _check_probabilities("bernoulli", probabilities)
    return _hits(probabilities, input.shape, input.dtype, generator)


@function(
    "bernoulli_",
    samples=[
        sample((3, 5), p=0.3),
        sample(index((2, 1, 4), 9), unit((4,))),
        sample(()),
        sample((0, 3), unit((0, 3))),
    ],
    wrong=[wrong(sample((3,), p=-0.5), "p must be from 0 to 1, got -0.5")],
    why=IN_PLACE,
)
def bernoulli_(
    input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Every element overwritten by 1 with probability p, otherwise by 0."""
    refuse_recorded("bernoulli_", input)
    _check_probabilities("bernoulli_", p)
    drawn_as = p.dtype if isinstance(p, Tensor) else dtypes.float64
    hits = _hits(p, input.shape, drawn_as, generator)
    return overwrite("bernoulli_", input, hits.to(input.dtype))


def _hits(
    probabilities: Tensor | float, shape: Shape, dtype: DType, generator: Generator | None
) -> Tensor:
    """1 where a number drawn from 0 to 1 lies below the chance, otherwise 0."""
    draws = table.rand(*shape, generator=generator, dtype=dtype)
    return table.lt(
        draws, probabilities.detach() if isinstance(probabilities, Tensor) else probabilities
    ).to(dtype)


def _check_probabilities(name: str, probabilities: Tensor | float) -> None:
    """Refuse what is no probability; a captured step takes those in a tensor for granted."""
    if not isinstance(probabilities, Tensor):
        if not 0 <= probabilities <= 1:
            raise OptionError(f"{name}: p must be from 0 to 1, got {probabilities}")
    elif not probabilities.is_floating_point():
        raise DTypeError(f"{name}: probabilities must be floats, got {probabilities.dtype}")
    elif (
        recording.current() is None
        and not ((probabilities >= 0) & (probabilities <= 1)).all().item()
    ):
        raise OptionError(f"{name}: probabilities must be from 0 to 1")


def _check_spread(std: Tensor | float) -> None:
    """Refuse a standard deviation below 0, as far as its numbers may be read."""
    if not isinstance(std, Tensor):
        below = not std >= 0
    else:
        below = recording.current() is None and bool((std < 0).any().item())
    if below:
        raise OptionError("normal: std must be at least 0")


def _check_weights(weights: Tensor, count: int, replacement: bool) -> None:
    """Refuse what cannot be drawn from; a captured step takes it for granted."""
    if recording.current() is not None:
        return
    bad = (weights < 0) | (weights - weights != 0)
    if table.sum(bad).item():
        raise OptionError("multinomial: weights must be finite and not negative")
    least = 1 if replacement else count
    if table.sum(table.sum(weights > 0, -1) < least).item():
        raise OptionError(f"multinomial: a row has fewer than {quantity(least, 'weight')} above 0")


@function(
    samples=[
        sample(positive((3, 5)), num_samples=2),
        sample(positive((2, 4)), num_samples=6, replacement=True),
        sample(positive((1,)), num_samples=1),
    ],
    why="it returns indices",
)
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn from each row with probabilities in proportion to its weights.

    Without replacement, the indices of the largest log(weight) plus Gumbel noise, as those of
    one draw after another (Efraimidis and Spirakis 2006).
    """
    if input.ndim not in (1, 2) or not input.is_floating_point():
        raise ShapeError(
            f"multinomial: weights must be floats in 1 or 2 dimensions, got {input.dtype} "
            f"{input.shape}"
        )
    if num_samples < 1 or not (replacement or num_samples <= input.shape[-1]):
        raise OptionError(f"multinomial: cannot draw {num_samples} from rows of {input.shape}")
    weights = input.detach()
    _check_weights(weights, num_samples, replacement)
    if not replacement:
        waits = -table.log1p(-table.rand(*input.shape, generator=generator, dtype=input.dtype))
        score = table.where(weights == 0, -float("inf"), table.log(weights) - table.log(waits))
        return table.topk(score, num_samples)[1]
    sums = table.cumsum(weights, -1)
    whole = sums[..., -1:]
    shape = (*input.shape[:-1], num_samples)
    draws = table.rand(*shape, generator=generator, dtype=input.dtype) * whole
    last = table.searchsorted(sums, whole.contiguous())  # a product may be rounded up to the whole
    indices = table.minimum(table.searchsorted(sums, draws, right=True), table.expand(last, shape))
    return table.clamp(indices, min=0)


def _overwrite(input: Tensor, name: str, numbers: Array) -> Tensor:
    refuse_recorded(name, input)
    copy_into(input.array, numbers)
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
    draws = draw_floats("uniform_", "uniform", input.shape, input.dtype, generator, (low, high))
    return _overwrite(input, "uniform_", draws)


@function(
    "normal_",
    samples=[sample((3, 5)), sample((2, 1, 4), mean=-1.0, std=0.5), sample(()), sample((0, 3))],
    why=IN_PLACE,
)
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrite every element with a normally distributed number."""
    if not std >= 0:
        raise OptionError(f"normal_: std must be at least 0, got {std}")
    draws = draw_floats("normal_", "normal", input.shape, input.dtype, generator, (mean, std))
    return _overwrite(input, "normal_", draws)
