"""Losses of probabilities, of logits and of their logarithms, element by element."""

from __future__ import annotations

from typing import Any

from gradcli.engine import table
from gradcli.engine.array import Array
from gradcli.engine.op import Op, declare_op, op
from gradcli.engine.ops.creation import creation
from gradcli.engine.ops.loss.regression import (
    PAIR_WRONG,
    REDUCTIONS,
    checked_reduction,
    declare_slopes,
    pair_samples,
    paired,
    paired_slopes,
    plain,
    reduced,
)
from gradcli.engine.sample import none, positive, sample, unit, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


class WeightedOp(Op[Tensor]):
    """A loss of pairs whose terms may have weights, of a shape that broadcasts to theirs."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The loss; weights go through simpler ops."""
        (input, target, *weights), options = self._bind(args, keywords)
        if not any(weight is not None for weight in weights):
            return super().__call__(*args, **keywords)
        assert input is not None and target is not None
        reduction = options.pop("reduction", "mean")
        checked_reduction(self.name, reduction)
        terms = super().__call__(input, target, reduction="none", **options)
        return reduced(self.weighed(terms, input, target, *weights), reduction)

    def weighed(
        self, terms: Tensor, input: Tensor, target: Tensor, weight: Tensor | None
    ) -> Tensor:
        """The terms times their weights."""
        del target
        product = terms if weight is None else terms * weight
        if product.shape != input.shape:
            raise ShapeError(
                f"{self.name}: weights that broadcast to {product.shape} do not fit the input "
                f"{input.shape}"
            )
        return product


class LogitsOp(WeightedOp):
    """Binary cross-entropy of logits, where targets of 1 may weigh more."""

    def weighed(
        self,
        terms: Tensor,
        input: Tensor,
        target: Tensor,
        weight: Tensor | None,
        pos_weight: Tensor | None = None,
    ) -> Tensor:
        """As the plain loss, with -log sigmoid(input), its value for targets of 1, once more."""
        if pos_weight is not None:
            ones = creation.ones(input.shape, dtype=input.dtype)
            positive = Op.__call__(self, input, ones, reduction="none")
            terms = terms + (pos_weight - 1) * target * positive
        return super().weighed(terms, input, target, weight)


def _decomposed_bce(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    yes, no = (table.clamp(table.log(p), min=-100.0) for p in (input, 1 - input))
    terms = (target - 1) * no - target * yes
    return reduced(terms if weight is None else terms * weight, reduction)


def binary_cross_entropy_forward(
    input: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """Mean of -target log(input) - (1 - target) log(1 - input); logarithms end at -100."""
    del weight  # WeightedOp sees to it
    return paired("binary_cross_entropy", "bce", input, target, reduction)


binary_cross_entropy = declare_op(
    WeightedOp(
        binary_cross_entropy_forward,
        name="binary_cross_entropy",
        saves=("input", "target"),
        decomposition=_decomposed_bce,
        samples=[
            *pair_samples(unit, unit, none()),
            sample(unit((2, 3)), unit((2, 3)), positive((3,))),
            sample(unit((2, 3)), unit((2, 3)), positive((2, 1)), reduction="none"),
        ],
        wrong=[
            *PAIR_WRONG,
            wrong(sample((2,), (2,), (3, 2)), "weights that broadcast to (3, 2) do not fit"),
        ],
    ),
    method=False,
)


declare_slopes(binary_cross_entropy, "bce")


def _decomposed_bce_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    more = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    terms = (1 - target) * input - more * table.logsigmoid(input)
    return reduced(terms if weight is None else terms * weight, reduction)


def binary_cross_entropy_with_logits_forward(
    input: Array,
    target: Array,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    *,
    reduction: str = "mean",
) -> Array:
    """Mean of log(1 + exp(input)) - target input: binary_cross_entropy of sigmoid(input)."""
    del weight, pos_weight  # LogitsOp sees to them
    name = "binary_cross_entropy_with_logits"
    return paired(name, "bce_logits", input, target, reduction)


binary_cross_entropy_with_logits = declare_op(
    LogitsOp(
        binary_cross_entropy_with_logits_forward,
        name="binary_cross_entropy_with_logits",
        saves=("input", "target"),
        decomposition=_decomposed_bce_logits,
        samples=[
            *pair_samples(plain, unit, none(), none()),
            sample((2, 3), unit((2, 3)), positive((3,)), positive((2, 1))),
            sample((2, 3), unit((2, 3)), none(), positive((3,)), reduction="none"),
        ],
        wrong=[
            *PAIR_WRONG,
            wrong(sample((2,), (2,), none(), (3, 1)), "broadcast to (3, 2) do not fit"),
        ],
    ),
    method=False,
)


declare_slopes(binary_cross_entropy_with_logits, "bce_logits")


def _decomposed_kl(
    input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    of_logs = table.exp(target) * (target - input) if log_target else None
    terms = target * (table.log(target) - input) if of_logs is None else of_logs
    if reduction != "batchmean":
        return reduced(terms, reduction)
    return table.sum(terms) / (input.shape[0] if input.ndim else 1)


@op(
    method=False,
    saves=("input", "target"),
    decomposition=_decomposed_kl,
    double_backward="decomposition",
    samples=[
        *pair_samples(plain, positive),
        sample((3, 5), (3, 5), log_target=True),
        sample((3, 5), positive((3, 5)), reduction="batchmean"),
        sample((), (), reduction="batchmean", log_target=True),
    ],
    wrong=[
        *PAIR_WRONG,
        wrong(sample((3,), (3,), reduction="avg"), "must be none, mean, sum or batchmean"),
    ],
)
def kl_div(
    input: Array, target: Array, *, reduction: str = "mean", log_target: bool = False
) -> Array:
    """Mean of target (log(target) - input), input being logarithms of probabilities.

    With log_target the target is logarithms too. "batchmean" divides the sum by the first size.
    """
    choices = (*REDUCTIONS, "batchmean")
    return paired("kl_div", _kl(log_target), input, target, reduction, choices=choices)


@kl_div.gradient
def kl_div_gradient(
    grad: Array,
    *,
    input: Array,
    target: Array,
    reduction: str,
    log_target: bool,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """-target / n, and (log(target) + 1 - input) / n."""
    return paired_slopes(_kl(log_target), grad, input, target, reduction, needs)


def _kl(log_target: bool) -> str:
    return "kl_log" if log_target else "kl"
