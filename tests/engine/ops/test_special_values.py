"""Every op at infinities, NaN, zeros, subnormals and large values: float32 says what float64 says.

NaN stays NaN, infinity infinity with its sign, and what is finite agrees up to rounding: a share of
the largest result, or what the result moves by where the inputs move by a few roundings.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from special_values import cases, start

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import Row
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError

ROUNDINGS, MOVES = 128, 32
EPSILON, SMALLEST, TINY = 2.0**-23, 2.0**-126, 2.0**-149
DRAWN = {
    "alpha_dropout",
    "bernoulli",
    "bernoulli_",
    "dropout",
    "dropout1d",
    "dropout2d",
    "multinomial",
}
DRAWN |= {"normal", "normal_", "rand_like", "randint_like", "randn_like", "uniform_"}
EMPTY = {"empty_like", "new_empty"}  # memory without contents
OPS = [op for op in gradcheck.every_op() if op.name not in DRAWN | EMPTY]
# Why float32 cannot say the same, at which kinds of values, in which ops.
DIFFERENCES = [
    (
        "the slope is written in the result, which is rounded to 1",
        "17",
        "expm1 sigmoid softcap tanh",
    ),
    ("x - tanh(x) of a small x has no digits left", "small", "tanhshrink"),
    ("squares and products of float32 overflow", "1e30", "cross layer_norm local_response_norm"),
    ("squares and products of float32 overflow", "1e30", "cosine_embedding_loss"),
    ("squares of float32 overflow and vanish", "smallest subnormal 1e30 mixed", "over_rms"),
    ("squares and products of float32 overflow", "1e30 mixed", "cosine_similarity"),
    ("differences of large numbers cancel", "1e30", "gru_steps poisson_nll_loss"),
    ("differences of large numbers cancel", "1e4", "triplet_margin_loss"),
    ("differences of large numbers cancel", "1e4", "triplet_margin_with_distance_loss"),
    ("differences of large numbers cancel", "1e30 small", "scaled_dot_product_attention"),
    ("saturated slopes cancel", "mixed", "softmax softmin cross_entropy"),
    ("a negative variance is none", "17 1e4 mixed", "gaussian_nll_loss"),
    ("turns are angles, of which 1e30 keeps no digit", "1e30", "rotary_embedding"),
    ("the largest number is another", "infinity mixed", "nan_to_num"),
    ("subnormal numbers are rounded", "subnormal mixed", "pow addcdiv addcdiv_"),
    ("its eps is that of the type", "small smallest subnormal 1e30 mixed", "rms_norm"),
    ("rows of padding are skipped or times infinity", "infinity NaN mixed", "conv_transpose2d"),
]


def answers(op: Row, case: Any, inputs: list[Tensor | None]) -> list[list[float]] | None:
    """Values and gradients, flat; None where the call is refused."""
    inputs = [None if x is None else x.detach() for x in inputs]
    floats = [x for i, x in enumerate(inputs) if x is not None and i in case.floats]
    for x in floats:
        x.requires_grad_(op.differentiable)
    try:
        outputs = gradcheck.call(op, case.sample, inputs)
    except GradcliError:
        return None
    for y in outputs:
        if y.requires_grad:
            first = engine.tensor(start(y.numel()), dtype=y.dtype).reshape(y.shape)
            y.backward(first, retain_graph=True)
    grads = [x.grad for x in floats]
    return [
        y.detach().double().reshape(-1).tolist()
        for y in (*outputs, *(g for g in grads if g is not None))
    ]


def moved(case: Any) -> list[Tensor | None]:
    """The inputs in float64, each number a few roundings of float32 up or down."""
    made: list[Tensor | None] = []
    for i, x in enumerate(case.inputs):
        if x is None or i not in case.floats:
            made.append(x)
            continue
        numbers = []
        for j, v in enumerate(x.double().reshape(-1).tolist()):
            sign = 4.0 if (j * 7 + i * 3) % 11 % 2 else -4.0
            far = v * (1 + sign * EPSILON) + sign * TINY if math.isfinite(v) else v
            numbers.append(far)
        made.append(engine.tensor(numbers, dtype=engine.float64).reshape(x.shape))
    return made


def narrow(v: float) -> float:
    """As a float32."""
    return v if math.isnan(v) or abs(v) < 3.4028235677973366e38 else math.copysign(math.inf, v)


def agrees(found: list[float], exact: list[float], shaken: list[float]) -> bool:
    """Element by element."""
    wanted = [narrow(v) for v in exact]
    finite = [abs(v) for v in wanted if math.isfinite(v)]
    apart = [abs(a - b) for a, b in zip(exact, shaken, strict=True)]
    slack = MOVES * max((d for d in apart if math.isfinite(d)), default=0.0)
    limit = ROUNDINGS * EPSILON * max(finite, default=0.0) + SMALLEST + slack
    return all(
        a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= limit
        for a, b in zip(found, wanted, strict=True)
    )


def differing(op: Row) -> set[str]:
    """The kinds of values at which float32 and float64 disagree."""
    kinds = set()
    for case in cases(op, engine.float32, 1):
        wide = [
            x.double() if x is not None and i in case.floats else x
            for i, x in enumerate(case.inputs)
        ]
        found, exact = answers(op, case, case.inputs), answers(op, case, wide)
        shaken = answers(op, case, moved(case))
        if shaken is None or list(map(len, shaken)) != list(map(len, exact or [])):
            shaken = exact  # other numbers are unique
        if found is None or exact is None or shaken is None:
            if found is not exact:
                kinds.add(case.kind)
        elif not all(map(agrees, found, exact, shaken)):
            kinds.add(case.kind)
    return kinds


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_float32_says_what_float64_says(op: Row) -> None:
    expected = defaultdict(set)
    for _, kinds, names in DIFFERENCES:
        for name in names.split():
            expected[name].update(kinds.split())
    found = differing(op)
    assert found <= expected[op.name]
    assert bool(found) == bool(expected[op.name])  # none is stale
