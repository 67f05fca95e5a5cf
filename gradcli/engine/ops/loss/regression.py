"""Losses of pairs: each element of input against that of target, then the mean or sum.

The terms are rows of csrc/scalar_ops.h, with slopes for both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import table
from gradcli.engine.array import Array, result, scalar
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.elementwise.slopes import slope
from gradcli.engine.ops.reduce.sum import total_over
from gradcli.engine.sample import Input, Sample, away_from, index, sample, wrong
from gradcli.engine.shape import numel
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

Make = Callable[[tuple[int, ...]], Input]


def pair_samples(first: Make, second: Make, *rest: Input, **options: object) -> list[Sample]:
    """Shapes and reductions that every loss of pairs is tried with."""

    def case(shape: tuple[int, ...], **more: object) -> Sample:
        return sample(first(shape), second(shape), *rest, **more, **options)

    return [
        case((3, 5)),
        case((2, 1, 4), reduction="sum"),
        case((2, 3), reduction="none"),
        case(()),
    ]


def plain(shape: tuple[int, ...]) -> Input:
    """Normally distributed numbers."""
    return Input(shape)


PAIR_WRONG = (
    wrong(sample((3, 5), (3,)), "input (3, 5) and target (3,) must have one shape"),
    wrong(sample((3,), index((3,), 3)), "target is int64 and x float64"),
)


def _decomposed_mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    return reduced((input - target) * (input - target), reduction)


@op(
    saves=("input", "target"),
    decomposition=_decomposed_mse_loss,
    double_backward="decomposition",
    samples=pair_samples(plain, plain),
    wrong=PAIR_WRONG,
)
def mse_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Mean of (input - target) squared."""
    mode = reduction_code("mse_loss", reduction)
    match("mse_loss", floats("mse_loss", input), target=target)
    if input.shape != target.shape:
        raise ShapeError(
            f"mse_loss: input {input.shape} and target {target.shape} must have one shape"
        )
    about: Any = {"shape": (input.numel,) if mode == 0 else (1,), "dtype": input.dtype}
    loss = result("mse", _flat(input), _flat(target), sizes=(mode,), **about)
    return loss.reshape(input.shape if mode == 0 else ())


def _flat(x: Array) -> Array:
    return x.contiguous().reshape((x.numel,))


@mse_loss.gradient
def mse_loss_gradient(
    grad: Array, *, input: Array, target: Array, reduction: str, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """2 (input - target) / n, and the same with the opposite sign."""
    a, b = _flat(input), _flat(target)

    def slope(first: Array, second: Array) -> Array:
        about: Any = {"shape": first.shape, "dtype": first.dtype}
        sizes = (REDUCTIONS.index(reduction),)
        out = result("mse_backward", first, second, _flat(grad), sizes=sizes, **about)
        return out.reshape(input.shape)

    return slope(a, b) if needs[0] else None, slope(b, a) if needs[1] else None


REDUCTIONS = ("none", "mean", "sum")  # 0, 1, 2 in csrc/cpu/loss/loss.h


def checked_reduction(name: str, reduction: str, choices: Sequence[str] = REDUCTIONS) -> None:
    """Refuse a reduction that there is not."""
    if reduction not in choices:
        expected = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise OptionError(f"{name}: reduction must be {expected}, got {reduction!r:.60}")


def reduction_code(name: str, reduction: str) -> int:
    """A reduction as kernels number it."""
    checked_reduction(name, reduction)
    return REDUCTIONS.index(reduction)


def reduced(terms: Tensor, reduction: str) -> Tensor:
    """The terms themselves, their mean or their sum."""
    return terms if reduction == "none" else OPS[reduction](terms)


def paired(
    name: str,
    kernel: str,
    input: Array,
    target: Array,
    reduction: str,
    options: Sequence[float] = (),
    choices: Sequence[str] = REDUCTIONS,
) -> Array:
    """The terms of a row of scalar_ops.h, reduced."""
    checked_reduction(name, reduction, choices)
    match(name, floats(name, input), target=target)
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: input {input.shape} and target {target.shape} must have one shape"
        )
    dtype = input.dtype
    terms = result(kernel, input, target, shape=input.shape, dtype=dtype, options=options)
    if reduction == "none":
        return terms
    divisor = None if reduction == "sum" else _divisor(input, reduction)
    return total_over(terms, tuple(range(terms.ndim)), keepdim=False, divisor=divisor)


def _divisor(input: Array | Tensor, reduction: str) -> int:
    """What the sum of all terms is divided by."""
    if reduction == "batchmean":
        return input.shape[0] if input.ndim else 1
    return 1 if reduction == "sum" else numel(input.shape)


def paired_slopes(
    kernel: str,
    grad: Array,
    input: Array,
    target: Array,
    reduction: str,
    needs: Sequence[bool],
    options: Sequence[float] = (),
) -> tuple[Array | None, ...]:
    """The gradients of both sides; what else goes in has none of a kernel's."""
    if reduction not in ("none", "sum"):
        share = scalar(1 / max(_divisor(input, reduction), 1), grad.dtype)
        grad = map_binary("mul", grad, share)
    inputs = input, target, input, grad.expand(input.shape)
    about: Any = {"shape": input.shape, "dtype": input.dtype, "options": options}
    gradients = [
        result(side, *inputs, **about) if need else None
        for side, need in zip((f"{kernel}_backward_a", f"{kernel}_backward_b"), needs, strict=False)
    ]
    return (*gradients, *(None for _ in needs[2:]))


def declare_gradient(declared: Op[Tensor], kernel: str) -> None:
    """Declare the gradient as the slopes of a row without options."""

    def gradient(
        grad: Array, *, input: Array, target: Array, reduction: str, needs: Sequence[bool]
    ) -> tuple[Array | None, ...]:
        return paired_slopes(kernel, grad, input, target, reduction, needs)

    declared.gradient(gradient)


def declare_slopes(declared: Op[Tensor], kernel: str) -> None:
    """Declare the gradient, and once more with ops: the slopes of a row, read from its text."""
    declare_gradient(declared, kernel)

    def graph(
        grad: Tensor, *, input: Tensor, target: Tensor, reduction: str, needs: Sequence[bool]
    ) -> tuple[Tensor | None, ...]:
        if reduction not in ("none", "sum"):
            grad = grad / max(_divisor(input, reduction), 1)
        values = {"a": input, "b": target}
        pairs = zip(FACTS[kernel].slope, needs, strict=False)
        gradients = [grad * slope(text, values) if need else None for text, need in pairs]
        return (*gradients, *(None for _ in needs[2:]))

    declared.double_backward(graph)


def _decomposed_l1(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    return reduced(table.abs(input - target), reduction)


@op(
    method=False,
    saves=("input", "target"),
    decomposition=_decomposed_l1,
    double_backward="decomposition",
    samples=pair_samples(away_from, lambda shape: away_from(shape, 5.0)),
    wrong=PAIR_WRONG,
)
def l1_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Mean of |input - target|; the gradient where they are equal is 0."""
    return paired("l1_loss", "l1", input, target, reduction)


declare_gradient(l1_loss, "l1")


def _decomposed_huber(
    input: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    size = table.abs(input - target)
    near = table.minimum(size, delta)
    return reduced(near * (size - 0.5 * near), reduction)


@op(
    method=False,
    saves=("input", "target"),
    decomposition=_decomposed_huber,
    double_backward="decomposition",
    samples=[*pair_samples(plain, plain, delta=0.7), sample((7,), (7,))],
    wrong=[
        *PAIR_WRONG,
        wrong(sample((3,), (3,), delta=0.0), "delta must be above 0"),
    ],
)
def huber_loss(
    input: Array, target: Array, *, reduction: str = "mean", delta: float = 1.0
) -> Array:
    """Mean of d^2 / 2 where d = |input - target| is at most delta, otherwise delta (d - delta / 2).

    Huber 1964.
    """
    if not delta > 0:
        raise OptionError(f"huber_loss: delta must be above 0, got {delta}")
    return paired("huber_loss", "huber", input, target, reduction, (delta,))


@huber_loss.gradient
def huber_loss_gradient(
    grad: Array,
    *,
    input: Array,
    target: Array,
    reduction: str,
    delta: float,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """The difference, held between -delta and delta, / n."""
    return paired_slopes("huber", grad, input, target, reduction, needs, (delta,))


def _decomposed_smooth_l1(
    input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    size = table.abs(input - target)
    near = table.minimum(size, beta)
    return reduced(size - near + near * near / (2 * beta or 1), reduction)


@op(
    method=False,
    saves=("input", "target"),
    decomposition=_decomposed_smooth_l1,
    double_backward="decomposition",
    samples=[
        *pair_samples(plain, plain, beta=0.7),
        sample(away_from((7,)), away_from((7,), 5.0), beta=0.0),
    ],
    wrong=[
        *PAIR_WRONG,
        wrong(sample((3,), (3,), beta=-1.0), "beta must be 0 or more"),
    ],
)
def smooth_l1_loss(
    input: Array, target: Array, *, reduction: str = "mean", beta: float = 1.0
) -> Array:
    """Mean of d^2 / (2 beta) where d = |input - target| is below beta, otherwise d - beta / 2."""
    if not beta >= 0:
        raise OptionError(f"smooth_l1_loss: beta must be 0 or more, got {beta}")
    return paired("smooth_l1_loss", _smooth(beta), input, target, reduction, (beta,))


@smooth_l1_loss.gradient
def smooth_l1_loss_gradient(
    grad: Array,
    *,
    input: Array,
    target: Array,
    reduction: str,
    beta: float,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """The difference / beta, held between -1 and 1, / n."""
    return paired_slopes(_smooth(beta), grad, input, target, reduction, needs, (beta,))


def _smooth(beta: float) -> str:
    """Nothing is smooth where beta is 0."""
    return "smooth_l1" if beta else "l1"
