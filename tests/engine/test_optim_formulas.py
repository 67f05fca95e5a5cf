"""The adaptive optimizers against their formulas in plain Python, with terms large enough to show:
an eps of 1e-8 could as well be subtracted."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import optim

START = [0.5, -1.25, 2.0]
GRADS = [[0.3, -0.2, 0.5], [0.1, 0.4, -0.7], [-0.6, 0.05, 0.2], [1.5, -2.0, 0.25]] * 3
LR = 0.1


def rmsprop(
    w: float,
    grads: list[float],
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> float:
    square = mean = total = 0.0
    for grad in grads:
        g = grad + weight_decay * w
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        scale = math.sqrt(square - (mean * mean if centered else 0)) + eps
        total = momentum * total + g / scale
        w -= LR * total
    return w


def adagrad(
    w: float, grads: list[float], lr_decay: float = 0.0, weight_decay: float = 0.0, eps: float = 0.0
) -> float:
    squares = 0.0
    for step, grad in enumerate(grads):
        g = grad + weight_decay * w
        squares += g * g
        w -= LR / (1 + step * lr_decay) * g / (math.sqrt(squares) + eps)
    return w


def adadelta(
    w: float, grads: list[float], rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
) -> float:
    square = changes = 0.0
    for grad in grads:
        g = grad + weight_decay * w
        square = rho * square + (1 - rho) * g * g
        change = math.sqrt(changes + eps) / math.sqrt(square + eps) * g
        changes = rho * changes + (1 - rho) * change * change
        w -= LR * change
    return w


def lion(
    w: float,
    grads: list[float],
    betas: tuple[float, float] = (0.9, 0.99),
    weight_decay: float = 0.0,
) -> float:
    mean = 0.0
    for g in grads:
        way = betas[0] * mean + (1 - betas[0]) * g
        w = w * (1 - LR * weight_decay) - LR * math.copysign(1.0, way)
        mean = betas[1] * mean + (1 - betas[1]) * g
    return w


def moments(grads: list[float], betas: tuple[float, float]) -> list[tuple[float, float]]:
    """The running means of the gradients and of their squares, after each step."""
    listed = [(0.0, 0.0)]
    for g in grads:
        m, v = listed[-1]
        listed.append((betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g))
    return listed[1:]


def amsgrad(
    w: float, grads: list[float], betas: tuple[float, float], eps: float, amsgrad: bool
) -> float:
    top = 0.0
    for t, (m, v) in enumerate(moments(grads, betas), 1):
        top = max(top, v) if amsgrad else v
        scale = math.sqrt(top / (1 - betas[1] ** t)) + eps
        w -= LR * m / (1 - betas[0] ** t) / scale
    return w


def radam(w: float, grads: list[float], betas: tuple[float, float], eps: float) -> float:
    most = 2 / (1 - betas[1]) - 1
    for t, (m, v) in enumerate(moments(grads, betas), 1):
        left = 1 - betas[1] ** t
        now = most - 2 * t * betas[1] ** t / left
        way = m / (1 - betas[0] ** t)
        if now > 5:
            rect = math.sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now))
            way *= rect * math.sqrt(left) / (math.sqrt(v) + eps)
        w -= LR * way
    return w


def nadam(
    w: float,
    grads: list[float],
    betas: tuple[float, float],
    eps: float,
    momentum_decay: float = 4e-3,
) -> float:
    steps = range(1, len(grads) + 2)
    mus = [betas[0] * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in steps]
    product = 1.0
    each = zip(grads, moments(grads, betas), pairwise(mus), strict=True)
    for t, (g, (m, v), (mu, following)) in enumerate(each, 1):
        product *= mu
        way = (1 - mu) * g / (1 - product) + following * m / (1 - product * following)
        w -= LR * way / (math.sqrt(v / (1 - betas[1] ** t)) + eps)
    return w


CASES: list[tuple[type[optim.Optimizer], Callable[..., float], dict[str, Any]]] = [
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, {"alpha": 0.4, "eps": 0.3}),
    (optim.RMSprop, rmsprop, {"alpha": 0.8, "eps": 0.3, "weight_decay": 0.2, "momentum": 0.7}),
    (optim.RMSprop, rmsprop, {"alpha": 0.8, "eps": 0.3, "centered": True}),
    (optim.RMSprop, rmsprop, {"alpha": 0.3, "eps": 0.2, "centered": True, "momentum": 0.5}),
    (optim.Adagrad, adagrad, {"lr_decay": 0.3, "weight_decay": 0.2, "eps": 0.4}),
    (optim.Adadelta, adadelta, {"rho": 0.7, "weight_decay": 0.2, "eps": 0.4}),
    (optim.Lion, lion, {"betas": (0.6, 0.7), "weight_decay": 0.3}),
    (optim.Adam, amsgrad, {"betas": (0.6, 0.7), "eps": 0.3, "amsgrad": False}),
    (optim.Adam, amsgrad, {"betas": (0.6, 0.7), "eps": 0.3, "amsgrad": True}),
    (optim.RAdam, radam, {"betas": (0.6, 0.9), "eps": 0.3}),
    (optim.NAdam, nadam, {"betas": (0.6, 0.7), "eps": 0.3, "momentum_decay": 0.5}),
]


@pytest.mark.parametrize(
    ("kind", "formula", "options"), CASES, ids=lambda one: getattr(one, "__name__", str(one))
)
def test_an_adaptive_optimizer_follows_its_formula(
    kind: type[optim.Optimizer], formula: Callable[..., float], options: dict[str, Any]
) -> None:
    p = engine.tensor(START, dtype=engine.float64, requires_grad=True)
    optimizer = kind([p], lr=LR, **options)  # type: ignore[call-arg]
    for grad in GRADS:
        p.grad = engine.tensor(grad, dtype=engine.float64)
        optimizer.step()
    columns = zip(START, zip(*GRADS, strict=True), strict=True)
    expected = [formula(w, list(column), **options) for w, column in columns]
    assert p.tolist() == pytest.approx(expected, rel=1e-12)
