"""Cross-entropy and negative log-likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import graph, table
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, nothing, result
from gradcli.engine.op import Op, declare_op, op
from gradcli.engine.ops.along import Along, along, floats, match
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.loss.regression import reduced, reduction_code
from gradcli.engine.sample import index, none, positive, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError
from gradcli.wording import quantity


def _classes(name: str, x: Array, target: Array, weight: Array | None) -> Along:
    """Checks shapes and types; x (N, C, ...) or (C,) as (outer, classes, inner)."""
    floats(name, x)
    match(name, x, weight=weight)
    if x.ndim == 0:
        raise ShapeError(f"{name}: x needs a dimension of classes, got shape ()")
    at = 0 if x.ndim == 1 else 1
    expected = shapes.reduced(x.shape, (at,), keepdim=False)
    if target.dtype.is_floating_point:
        raise DTypeError(f"{name}: target must hold class numbers, got {target.dtype.name}")
    if target.shape != expected:
        raise ShapeError(
            f"{name}: x {x.shape} has {quantity(x.shape[at], 'class')} in dimension {at} and needs "
            f"a target of shape {expected}, got {target.shape}"
        )
    if weight is not None and weight.shape != x.shape[at : at + 1]:
        raise ShapeError(
            f"{name}: x {x.shape} has {quantity(x.shape[at], 'class')}, weight has shape "
            f"{weight.shape}"
        )
    return along(x.shape, (at,))


def _run_as(name: str, call: Callable[[], Array]) -> Array:
    """A result whose kernel names a bad target as that of this op."""
    try:
        return call()
    except RangeError as error:
        message = error.message.replace("cross_entropy: index", f"{name}: target")
        raise RangeError(message) from None


def _weights(weight: Array | None, x: Array) -> Array:
    return nothing(x.dtype) if weight is None else weight.contiguous()


def _labels(lines: Along, target: Array) -> Array:
    """The class numbers as the kernels take them."""
    whole = target if target.dtype is dtypes.int64 else target.cast(dtypes.int64)
    return lines.fold_result(whole)


def _loss(
    name: str,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    smooth: float,
) -> tuple[Array, Array, Array]:
    """Loss, the rows' (largest logit, logarithm of the sum), and what a mean is divided by."""
    lines = _classes(name, x, target, weight)
    mode, (outer, _, inner) = reduction_code(name, reduction), lines.lines
    loss = lines.empty(x.dtype) if mode == 0 else empty((1,), x.dtype)
    dtype = x.dtype.computed
    stats, labels = empty((outer, 2, inner), dtype), _labels(lines, target)
    sizes = (mode, ignore_index, int(name == "nll_loss"))
    arrays = lines.fold(x), labels, _weights(weight, x), loss, stats
    about: dict[str, Any] = {"shape": (1,), "dtype": dtype, "sizes": sizes, "options": (smooth,)}
    total = _run_as(name, lambda: result("cross_entropy", *arrays, **about))
    return loss.reshape(target.shape if mode == 0 else ()), stats, total


def _loss_slope(
    name: str,
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    stats: Array,
    total: Array,
    reduction: str,
    ignore_index: int,
    smooth: float,
) -> Array:
    lines = _classes(name, x, target, weight)
    mode = reduction_code(name, reduction)
    grad = lines.fold_result(grad) if mode == 0 else grad.contiguous().reshape((1,))
    labels = _labels(lines, target)
    sizes = (mode, ignore_index, int(name == "nll_loss"))
    inputs = lines.fold(x), labels, _weights(weight, x), stats, total, grad
    about: dict[str, Any] = {"shape": lines.lines, "dtype": x.dtype, "sizes": sizes}
    return lines.unfold(
        _run_as(name, lambda: result("cross_entropy_backward", *inputs, **about, options=(smooth,)))
    )


def _one_by_one(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smooth: float,
) -> Tensor:
    """The loss of logarithms of probabilities, written with simpler ops."""
    at = 0 if logs.ndim == 1 else 1
    classes = logs.shape[at]
    column = (classes,) + (1,) * (logs.ndim - at - 1)
    hit = table.to(
        table.unsqueeze(target, at) == table.reshape(tensor(list(range(classes))), column),
        logs.dtype,
    )
    mask = table.to(target != ignore_index, logs.dtype)
    weighed = logs if weight is None else logs * table.reshape(weight, column)
    of_target = hit if weight is None else hit * table.reshape(weight, column)
    loss = -(1 - smooth) * table.sum(hit * weighed, at)
    if smooth:
        loss = loss - table.sum(weighed, at) * (smooth / classes)
    loss = loss * mask
    if reduction == "mean":
        return table.sum(loss) / table.sum(table.sum(of_target, at) * mask)
    return reduced(loss, reduction)


def _decomposed_cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    logs = table.log_softmax(x, 0 if x.ndim == 1 else 1)
    return _one_by_one(logs, target, weight, ignore_index, reduction, label_smoothing)


def _decomposed_nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    return _one_by_one(x, target, weight, ignore_index, reduction, 0.0)


def _of_weight(
    decomposition: Any, grad: Array, x: Array, target: Array, weight: Array | None, **options: Any
) -> Array | None:
    """The gradient of the class weights, seldom asked for: through the decomposition."""
    assert weight is not None
    with graph.enable_grad():
        leaf = Tensor(weight, requires_grad=True)
        decomposition(Tensor(x), Tensor(target), leaf, **options).backward(Tensor(grad))
    return None if leaf.grad is None else leaf.grad.array


class CrossEntropyOp(Op[Tensor]):
    """Takes class numbers, or probabilities: float targets of the shape of x."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The loss; targets of probabilities go through simpler ops."""
        target = args[1] if len(args) > 1 else keywords.get("target")
        if isinstance(target, Tensor) and target.is_floating_point():
            (x, _, weight), options = self._bind(args, keywords)
            assert x is not None
            if target.shape == x.shape:
                return _against_probabilities(x, target, weight, **options)
        return super().__call__(*args, **keywords)


def _against_probabilities(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus sum of target * log softmax(x); the mean is one over samples."""
    _checked_smoothing(label_smoothing)
    reduction_code("cross_entropy", reduction)
    match("cross_entropy", floats("cross_entropy", x.array), target=target.array)
    if ignore_index >= 0:
        raise OptionError("cross_entropy: ignore_index is for class numbers, not probabilities")
    at = 0 if x.ndim == 1 else 1
    logs = table.log_softmax(x, at)
    if weight is not None:
        logs = logs * table.reshape(weight, (x.shape[at],) + (1,) * (x.ndim - at - 1))
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / x.shape[at]
    return reduced(-table.sum(logs * target, at), reduction)


def _checked_smoothing(smooth: float) -> float:
    if not 0 <= smooth <= 1:
        raise OptionError(f"cross_entropy: label_smoothing must lie in 0..1, got {smooth}")
    return smooth


def cross_entropy_forward(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Minus log softmax(x) at the target class of each sample, x (N, C, ...) or (C,).

    The mean is over the samples that are not ignored (by their weights); NaN where all are.
    """
    smooth = _checked_smoothing(label_smoothing)
    return _loss("cross_entropy", x, target, weight, reduction, ignore_index, smooth)


cross_entropy = declare_op(
    CrossEntropyOp(
        cross_entropy_forward,
        name="cross_entropy",
        outputs=("y", "stats", "total"),
        saves=("x", "target", "weight", "stats", "total"),
        decomposition=_decomposed_cross_entropy,
        double_backward="decomposition",
        samples=[
            sample((4, 5), index((4,), 5), none()),
            sample((4, 3), index((4,), 3), positive((3,)), label_smoothing=0.1),
            sample((2, 3, 5), index((2, 5), 3), none(), reduction="none"),
            sample((2, 3, 2, 2), index((2, 2, 2), 3), positive((3,)), ignore_index=1),
            sample((5,), index((), 5), none(), reduction="sum", label_smoothing=0.3),
            sample((3, 1), index((3,), 1), none()),
        ],
        wrong=[
            wrong(
                sample((4, 3), index((5,), 3), none()),
                "x (4, 3) has 3 classes in dimension 1 and needs a target of shape (4,), got (5,)",
            ),
            wrong(sample((4, 3), index((4,), 3), (2,)), "3 classes, weight has shape (2,)"),
            wrong(sample((4, 3), index((4,), 3), none(), label_smoothing=2.0), "lie in 0..1"),
            wrong(sample((), index((), 3), none()), "needs a dimension of classes"),
        ],
    )
)


@cross_entropy.gradient
def cross_entropy_gradient(
    grad: Array,
    *,
    x: Array,
    target: Array,
    weight: Array | None,
    stats: Array,
    total: Array,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """(softmax(x) * sum(q) - q) * weight / total, for q the smoothed target."""
    inputs = x, target, weight
    how = reduction, ignore_index, label_smoothing
    of_x = _loss_slope("cross_entropy", grad, *inputs, stats, total, *how) if needs[0] else None
    if not needs[2]:
        return of_x, None, None
    options: dict[str, Any] = {"reduction": reduction, "ignore_index": ignore_index}
    options |= {"label_smoothing": label_smoothing}
    return of_x, None, _of_weight(_decomposed_cross_entropy, grad, *inputs, **options)


@op(
    outputs=("y", "stats", "total"),
    saves=("x", "target", "weight", "stats", "total"),
    decomposition=_decomposed_nll_loss,
    double_backward="decomposition",
    samples=[
        sample((4, 5), index((4,), 5), none()),
        sample((4, 3), index((4,), 3), positive((3,)), ignore_index=0),
        sample((2, 3, 5), index((2, 5), 3), none(), reduction="none"),
        sample((5,), index((), 5), positive((5,)), reduction="sum"),
        sample((3, 1), index((3,), 1), none()),
    ],
    wrong=[wrong(sample((4, 3), index((5,), 3), none()), "a target of shape (4,), got (5,)")],
)
def nll_loss(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tuple[Array, Array, Array]:
    """Minus x at the target class of each sample; x holds logarithms of probabilities."""
    return _loss("nll_loss", x, target, weight, reduction, ignore_index, 0.0)


@nll_loss.gradient
def nll_loss_gradient(
    grad: Array,
    *,
    x: Array,
    target: Array,
    weight: Array | None,
    stats: Array,
    total: Array,
    reduction: str,
    ignore_index: int,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """-weight / total at the target, otherwise 0."""
    inputs = x, target, weight
    how = reduction, ignore_index, 0.0
    of_x = _loss_slope("nll_loss", grad, *inputs, stats, total, *how) if needs[0] else None
    if not needs[2]:
        return of_x, None, None
    options: dict[str, Any] = {"reduction": reduction, "ignore_index": ignore_index}
    return of_x, None, _of_weight(_decomposed_nll_loss, grad, *inputs, **options)
