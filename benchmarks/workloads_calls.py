"""Single eager calls of the engine: what Python costs around a small kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.runner import Loop, Runner
from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional as F

THREADS = 2


def _backward() -> Callable[[], Any]:
    x = engine.rand(32, 32, requires_grad=True)

    def call() -> None:
        x.grad = None
        (x * x).sum().backward()

    return call


def _linear() -> Callable[[], Any]:
    layer, x = nn.Linear(32, 32), engine.rand(16, 32)
    return lambda: layer(x)


def _cross_entropy() -> Callable[[], Any]:
    logits = engine.rand(32, 10)
    target = engine.randint(0, 10, (32,))
    return lambda: F.cross_entropy(logits, target)


def _small(call: Callable[[Any], Any]) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        x = engine.rand(8, 8)
        return lambda: call(x)

    return prepare


def _conv2d() -> Callable[[], Any]:
    x, weight = engine.rand(1, 3, 8, 8), engine.rand(4, 3, 3, 3)
    return lambda: F.conv2d(x, weight, padding=1)


CALLS: dict[str, Callable[[], Callable[[], Any]]] = {
    "x + x": _small(lambda x: x + x),
    "x * 2.0": _small(lambda x: x * 2.0),
    "exp(x)": _small(engine.exp),
    "x @ x": _small(lambda x: x @ x),
    "sum(dim, keepdim)": _small(lambda x: x.sum(dim=1, keepdim=True)),
    "softmax(dim)": _small(lambda x: F.softmax(x, dim=-1)),
    "x.reshape": _small(lambda x: x.reshape(4, 16)),
    "x[1:3]": _small(lambda x: x[1:3]),
    "cat": _small(lambda x: engine.cat([x, x], dim=1)),
    "layer_norm": _small(lambda x: F.layer_norm(x, (8,))),
    "zeros": _small(lambda x: engine.zeros(8, 8)),
    "linear layer": _linear,
    "conv2d": _conv2d,
    "cross_entropy": _cross_entropy,
    "backward of (x * x).sum()": _backward,
}


def call(name: str, mode: str) -> Runner:
    """One of CALLS, over and over; `mode` is always eager."""
    cpu.set_threads(THREADS)
    function = CALLS[name]()
    return Loop(function, [()], values=lambda result: [])
