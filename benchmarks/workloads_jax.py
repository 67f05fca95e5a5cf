"""The workloads in jax with optax: one compiled call a step, and many steps in one `lax.scan`.

Weights are kept as jax programs keep them: linear ones (into, out), convolutions HWIO over NHWC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from jax import lax
from jax import numpy as jnp

from benchmarks import course as courses
from benchmarks.course import Course
from benchmarks.runner import Loop, Runner

Weights = dict[str, Any]


def _linear(w: Weights, name: str, x: Any) -> Any:
    y = x @ w[f"{name}.weight"]
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def _conv(w: Weights, name: str, x: Any, stride: int = 1) -> Any:
    kernel = w[f"{name}.weight"]
    pad = kernel.shape[0] // 2
    y = lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        [(pad, pad), (pad, pad)],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def _pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _batch_norm(w: Weights, name: str, x: Any, state: Weights) -> Any:
    """Normalised by the batch; the running mean and variance go into `state`."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[-1]
    for key, now in (("mean", mean), ("var", variance * count / (count - 1))):
        state[f"{name}.{key}"] = 0.9 * state[f"{name}.{key}"] + 0.1 * lax.stop_gradient(now)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def _layer_norm(w: Weights, name: str, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def _mlp(layers: int, activation: Callable[[Any], Any]) -> Callable[..., Any]:
    def forward(w: Weights, x: Any, state: Weights) -> Any:
        for i in range(layers - 1):
            x = activation(_linear(w, f"layers.{i}", x))
        return _linear(w, f"layers.{layers - 1}", x)

    return forward


def _cnn(w: Weights, x: Any, state: Weights) -> Any:
    x = _pool(jax.nn.relu(_conv(w, "conv1", x)))
    x = _pool(jax.nn.relu(_conv(w, "conv2", x)))
    return _linear(w, "head", jax.nn.relu(_linear(w, "hidden", x.reshape(len(x), -1))))


def _resnet(w: Weights, x: Any, state: Weights) -> Any:
    x = jax.nn.relu(_batch_norm(w, "stem_norm", _conv(w, "stem", x), state))
    for i, (_, _, stride) in enumerate(courses.RESNET_BLOCKS):
        name = f"blocks.{i}"
        y = _batch_norm(w, f"{name}.norm1", _conv(w, f"{name}.conv1", x, stride), state)
        y = _conv(w, f"{name}.conv2", jax.nn.relu(y))
        y = _batch_norm(w, f"{name}.norm2", y, state)
        if stride != 1:
            x = _batch_norm(w, f"{name}.short_norm", _conv(w, f"{name}.short", x, stride), state)
        x = jax.nn.relu(x + y)
    return _linear(w, "head", x.mean((1, 2)))


def _gpt(w: Weights, x: Any, state: Weights) -> Any:
    batch, steps = x.shape
    width, heads = courses.GPT_WIDTH, courses.GPT_HEADS
    y = w["token.weight"][x] + w["position.weight"]
    for i in range(courses.GPT_LAYERS):
        name = f"blocks.{i}"
        qkv = _linear(w, f"{name}.qkv", _layer_norm(w, f"{name}.norm1", y))
        parts = jnp.split(qkv.reshape(batch, steps, 3 * heads, width // heads), 3, axis=2)
        read = jax.nn.dot_product_attention(*parts, is_causal=True)
        y = y + _linear(w, f"{name}.out", read.reshape(batch, steps, width))
        up = _linear(w, f"{name}.up", _layer_norm(w, f"{name}.norm2", y))
        y = y + _linear(w, f"{name}.down", jax.nn.gelu(up, approximate=True))
    return _linear(w, "head", _layer_norm(w, "norm", y)).reshape(-1, courses.VOCABULARY)


def _lstm(w: Weights, x: Any, state: Weights) -> Any:
    into = w["token.weight"][x] @ w["lstm.weight_ih_l0"]
    into = into + w["lstm.bias_ih_l0"] + w["lstm.bias_hh_l0"]
    recurrent = w["lstm.weight_hh_l0"]

    def cell(carry: Any, gates: Any) -> Any:
        hidden, memory = carry
        i, f, g, o = jnp.split(gates + hidden @ recurrent, 4, axis=-1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    zero = jnp.zeros((x.shape[0], courses.LSTM_WIDTH))
    _, out = lax.scan(cell, (zero, zero), into.transpose(1, 0, 2))
    return _linear(w, "head", out.transpose(1, 0, 2)).reshape(-1, courses.VOCABULARY)


MODELS: dict[str, Callable[..., Any]] = {
    "W1": _mlp(4, jax.nn.relu),
    "W2": _mlp(4, jax.nn.relu),
    "W3": _mlp(3, jax.nn.relu),
    "W4": _cnn,
    "W5": _resnet,
    "W6": _gpt,
    "W7": _lstm,
    "W8": _mlp(2, jax.nn.sigmoid),
}

OPTIMIZERS: dict[str, Callable[[float], Any]] = {
    "adam": optax.adam,
    "adamw": lambda lr: optax.adamw(lr, weight_decay=0.01),
    "sgd": lambda lr: optax.sgd(lr, momentum=0.9),
    "plain": optax.sgd,
}


def _weights(course: Course) -> Weights:
    """The first weights in jax's order of axes."""
    arrays: Weights = {}
    for p in course.workload.parameters:
        weight = np.frombuffer(course.weights[p.name], np.float32).reshape(p.shape)
        if len(p.shape) == 4:
            weight = weight.transpose(2, 3, 1, 0)
        elif p.name == "hidden.weight":  # its inputs come channels first
            weight = weight.reshape(128, 32, 7, 7).transpose(2, 3, 1, 0).reshape(-1, 128)
        elif len(p.shape) == 2 and p.name not in ("token.weight", "position.weight"):
            weight = weight.T
        arrays[p.name] = jnp.array(np.ascontiguousarray(weight))
    return arrays


def _batches(course: Course) -> tuple[Any, Any]:
    sides = []
    for view, side in ((course.x, course.workload.x), (course.y, course.workload.y)):
        kind = np.float32 if side.below is None else np.int64
        values = np.frombuffer(view, kind).reshape(courses.BATCHES, *side.shape)
        values = values if side.below is None else values.astype(np.int32)
        sides.append(values.transpose(0, 1, 3, 4, 2) if values.ndim == 5 else values)
    return sides[0], sides[1]


def _loss(scores: Any, y: Any, whole: bool) -> Any:
    if not whole:
        return ((scores - y) ** 2).mean()
    return optax.softmax_cross_entropy_with_integer_labels(scores, y.reshape(-1)).mean()


def build(course: Course, mode: str) -> Runner:
    """The workload as a loop of `jit` steps, or of `scan`s over many."""
    workload = course.workload
    forward, whole = MODELS[workload.name], workload.y.below is not None
    optimizer = OPTIMIZERS[workload.optimizer](workload.lr)
    weights = _weights(course)
    norms = [p for p in workload.parameters if "norm" in p.name and workload.name == "W5"]
    means = {f"{p.name[:-5]}.mean": jnp.zeros(p.shape) for p in norms if p.centre == 0}
    variances = {f"{p.name[:-7]}.var": jnp.ones(p.shape) for p in norms if p.centre == 1}

    def loss_of(w: Weights, state: Weights, x: Any, y: Any) -> Any:
        state = dict(state)
        return _loss(forward(w, x, state), y, whole), state

    def step(carry: Any, batch: Any) -> Any:
        w, opt, state = carry
        (loss, state), slopes = jax.value_and_grad(loss_of, has_aux=True)(w, state, *batch)
        updates, opt = optimizer.update(slopes, opt, w)
        return (optax.apply_updates(w, updates), opt, state), loss

    many = mode == "scan"
    compiled = jax.jit(
        (lambda carry, batch: lax.scan(step, carry, batch)) if many else step, donate_argnums=0
    )
    carry = (weights, optimizer.init(weights), {**means, **variances})

    def call(x: Any, y: Any) -> Any:
        nonlocal carry
        carry, loss = compiled(carry, (x, y))
        return loss

    xs, ys = _batches(course)
    numbers = course.scan_batches() if many else range(courses.BATCHES)
    items = [(jnp.array(xs[i]), jnp.array(ys[i])) for i in numbers]
    return Loop(
        call,
        items,
        unit=workload.scan if many else 1,
        values=lambda loss: [float(v) for v in np.asarray(loss).reshape(-1)],
        finish=lambda loss: jax.block_until_ready(carry),
    )


def versions() -> dict[str, str]:
    """What is compared here."""
    return {"jax": jax.__version__, "optax": optax.__version__}
